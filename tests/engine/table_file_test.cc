#include "engine/version/table_file.h"

#include <thread>

#include "base/random.h"
#include "engine/version/file_names.h"
#include "engine/version/filter_file.h"
#include "table/table_builder.h"
#include "tests/engine/version_test_util.h"

namespace tamis::internal {
namespace {

using Code = absl::StatusCode;

class TableFileTest : public VersionTest {
 protected:
  TableFileTest() {
    context_->directory = directory_;
    context_->descriptors = std::make_shared<DescriptorCache>(directory_, 8);
    context_->on_loaded = [this](const TableFile&) { ++loads_; };
    context_->on_obsolete = [this](const std::string& name, uint64_t) { obsolete_.push_back(name); };
  }
  TableMeta Build(uint64_t number) {
    TableBuildOptions options;
    options.table_id = Id128{static_cast<uint8_t>(number), 1};
    TableMeta meta;
    meta.number = number;
    meta.id = options.table_id;
    auto file = directory_->CreateAppend(TableName(number));
    EXPECT_OK(file);
    TableBuilder builder(options, file->get());
    for (int i = 100; i < 200; ++i) EXPECT_OK(builder.Add("key" + std::to_string(i), 1, EntryKind::kPut, "value"));
    auto summary = builder.Finish();
    EXPECT_OK(summary);
    EXPECT_OK((*file)->Close());
    meta.size = summary->file_size;
    meta.smallest = "key100";
    meta.largest = "key199";
    return meta;
  }

  const std::shared_ptr<TableFileContext> context_ = std::make_shared<TableFileContext>();
  std::atomic<int> loads_{0};
  std::vector<std::string> obsolete_;
};

TEST_F(TableFileTest, OpensOnceForAllCallers) {
  auto table = std::make_shared<TableFile>(Build(1), context_);
  EXPECT_EQ(table->LoadedReader(), nullptr);
  directory_->opened = 0;
  std::vector<std::thread> threads;
  std::vector<const TableReader*> readers(4);
  for (size_t t = 0; t < readers.size(); ++t) {
    threads.emplace_back([&, t] {
      auto reader = table->Reader();
      if (reader.ok()) readers[t] = *reader;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const TableReader* reader : readers) EXPECT_EQ(reader, table->LoadedReader());
  ASSERT_NE(table->LoadedReader(), nullptr);
  EXPECT_EQ(table->LoadedReader()->properties().entries, 100u);
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(directory_->opened, 1);
}

TEST_F(TableFileTest, AnErrorIsReturnedAndNotRemembered) {
  const TableMeta meta = Build(1);
  const TableFile table(meta, context_);
  FailAt("open", "000001.table", absl::ResourceExhaustedError("injected"));
  EXPECT_CODE(table.Reader(), Code::kResourceExhausted);
  EXPECT_EQ(table.LoadedReader(), nullptr);
  Heal();
  EXPECT_OK(table.Reader());
  EXPECT_EQ(loads_, 1);
}

TEST_F(TableFileTest, AnotherTableOrSizeIsDataLoss) {
  const TableMeta good = Build(1);
  TableMeta meta = good;
  meta.id[3] = 1;
  EXPECT_CODE(TableFile(meta, context_).Reader(), Code::kDataLoss);
  meta = good;
  meta.size += 1;
  EXPECT_CODE(TableFile(meta, context_).Reader(), Code::kDataLoss);
  EXPECT_CODE(TableFile(meta, context_).OpenFile(), Code::kDataLoss);
  meta = good;
  meta.number = 2;
  EXPECT_CODE(TableFile(meta, context_).Reader(), Code::kDataLoss);
  EXPECT_OK(TableFile(good, context_).Reader());
  EXPECT_EQ(loads_, 1);
}

TEST_F(TableFileTest, AnotherFilterOfTheSameTableSharesAllElse) {
  context_->kept_bytes = std::make_shared<std::atomic<uint64_t>>(0);
  auto own = std::make_shared<TableFile>(Build(1), context_);
  ASSERT_OK_AND_ASSIGN(const TableReader* reader, own->Reader());
  EXPECT_TRUE(own->filter().has_filter());
  auto builder = FilterBuilder::Create({.bits_per_key = 20, .owner = own->meta().id});
  ASSERT_OK(builder);
  (*builder)->AddHash(1);
  auto bytes = (*builder)->Finish();
  ASSERT_OK(bytes);
  ASSERT_OK_AND_ASSIGN(const FilterFileMeta made, WriteFilterFile(directory_.get(), 9, bytes->view()));
  std::shared_ptr<TableFile> with_file = own->WithFilter(made, false);
  std::shared_ptr<TableFile> without = own->WithFilter(std::nullopt, true);
  directory_->opened = 0;
  ASSERT_OK_AND_ASSIGN(const TableReader* same, with_file->Reader());
  EXPECT_EQ(same, reader);
  EXPECT_EQ(with_file->filter_info().keys, 1u);
  ASSERT_OK(without->Reader());
  EXPECT_FALSE(without->filter().has_filter());
  EXPECT_OK(without->filter_refusal());
  EXPECT_EQ(directory_->opened, 1) << "the filter file";
  own->marks().busy = true;
  EXPECT_TRUE(with_file->marks().busy && without->marks().busy);
  // The file of a replaced filter goes with its last user; the table only with the last of all.
  with_file->MarkFilterObsolete();
  EXPECT_EQ(*context_->kept_bytes, made.size);
  without->MarkObsolete();
  without.reset();
  EXPECT_TRUE(obsolete_.empty());
  with_file.reset();
  EXPECT_EQ(obsolete_, (std::vector<std::string>{"000009.filter"}));
  own.reset();
  EXPECT_EQ(obsolete_, (std::vector<std::string>{"000009.filter", "000001.table"}));
  EXPECT_EQ(*context_->kept_bytes, 0u);
}

TEST_F(TableFileTest, ATableWithABadFilterFileIsReadWithItsOwnFilter) {
  TableMeta meta = Build(1);
  meta.filter_file = FilterFileMeta{9, 100, 1};
  const TableFile table(meta, context_);
  ASSERT_OK_AND_ASSIGN(const TableReader* reader, table.Reader());
  EXPECT_CODE(table.filter_refusal(), Code::kDataLoss);
  EXPECT_EQ(table.filter_info().keys, reader->properties().distinct_keys);
}

TEST_F(TableFileTest, IsReportedObsoleteOnceByTheLastReferenceAndOnlyIfMarked) {
  auto kept = std::make_shared<TableFile>(Build(1), context_);
  auto dropped = std::make_shared<TableFile>(Build(2), context_);
  auto never_opened = std::make_shared<TableFile>(Build(3), context_);
  ASSERT_OK(kept->Reader());
  ASSERT_OK(dropped->Reader());
  auto other = dropped;
  dropped->MarkObsolete();
  never_opened->MarkObsolete();
  dropped.reset();
  kept.reset();
  EXPECT_TRUE(obsolete_.empty());
  EXPECT_EQ(context_->descriptors->open_descriptors(), 1u);
  uint32_t descriptors_then = 99;
  context_->on_obsolete = [&](const std::string& name, uint64_t) {
    obsolete_.push_back(name);
    descriptors_then = context_->descriptors->open_descriptors();
  };
  other.reset();
  EXPECT_EQ(descriptors_then, 0u);  // closed before it is deleted
  never_opened.reset();
  EXPECT_EQ(obsolete_, (std::vector<std::string>{"000002.table", "000003.table"}));
}

TEST_F(TableFileTest, AKeptDescriptorReadsATableThatWasDeleted) {
  context_->keep_open = true;
  const TableFile table(Build(1), context_);
  directory_->opened = 0;
  ASSERT_OK(table.OpenFile());
  ASSERT_OK(table.OpenFile());
  EXPECT_EQ(loads_, 0);
  ASSERT_OK(directory_->Remove(TableName(1)));
  ASSERT_OK(table.Reader());
  ASSERT_OK(table.OpenFile());
  EXPECT_EQ(directory_->opened, 1);
  EXPECT_EQ(context_->descriptors->open_descriptors(), 0u);
}

}  // namespace
}  // namespace tamis::internal
