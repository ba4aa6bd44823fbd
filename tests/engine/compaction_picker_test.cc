#include "engine/compact/compaction_picker.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status_util.h"
#include "tests/support/script_runner.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {
namespace {

// ---- Scripts ----

std::string PlanText(const std::optional<CompactionPlan>& plan) {
  if (!plan) return "none";
  std::ostringstream text;
  text << CompactionReasonName(plan->reason) << " L" << plan->level << ">L" << plan->output_level << " [";
  for (size_t i = 0; i < plan->inputs.size(); ++i) text << (i == 0 ? "" : " ") << plan->inputs[i];
  text << "] + [";
  for (size_t i = 0; i < plan->output_inputs.size(); ++i) text << (i == 0 ? "" : " ") << plan->output_inputs[i];
  text << "] " << plan->input_bytes << " bytes" << (plan->trivial_move ? ", move" : "");
  return text.str();
}

struct ScriptTree {
  CompactionOptions options;
  SequenceNumber oldest = 1000;
  std::vector<std::string> cursor_keys;
  std::deque<TableMeta> metas;
  TreeShape tree;

  ScriptTree() {
    options.levels = 4;
    options.level_base_bytes = 1000;
    options.target_file_bytes = 400;  // files below 50 bytes are small
    Resize();
  }
  void Resize() {
    tree.resize(options.levels);
    cursor_keys.resize(options.levels);
  }

  void Option(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const uint64_t value = std::stoull(word.substr(equals + 1));
    if (name == "levels") options.levels = static_cast<uint32_t>(value);
    if (name == "base") options.level_base_bytes = value;
    if (name == "target") options.target_file_bytes = value;
    if (name == "ratio") options.size_ratio = static_cast<uint32_t>(value);
    if (name == "trigger") options.l0_trigger = static_cast<uint32_t>(value);
    if (name == "slowdown") options.l0_slowdown = static_cast<uint32_t>(value);
    if (name == "oldest") oldest = value;
    Resize();
  }

  void File(size_t level, std::istringstream& words) {
    TableMeta& meta = metas.emplace_back();
    std::string range, word;
    words >> meta.number >> range >> meta.size;
    const size_t dash = range.find('-');
    meta.smallest = range.substr(0, dash);
    meta.largest = range.substr(dash + 1);
    meta.entries = 10;
    meta.largest_sequence = 1;
    FileShape file;
    std::optional<uint64_t> keys;
    while (words >> word) {
      if (word == "busy") file.busy = true;
      if (word == "blocked") file.blocked = true;
      const uint64_t value = word.find('=') == std::string::npos ? 0 : std::stoull(word.substr(word.find('=') + 1));
      if (word.rfind("entries=", 0) == 0) meta.entries = value;
      if (word.rfind("deletes=", 0) == 0) meta.deletes = value;
      if (word.rfind("keys=", 0) == 0) keys = value;
      if (word.rfind("seq=", 0) == 0) meta.largest_sequence = value;
    }
    meta.distinct_keys = keys.value_or(meta.entries);
    file.meta = &meta;
    tree.at(level).push_back(file);
  }

  std::string Ask(const std::string& question, std::istringstream& words) {
    std::string word;
    if (question == "targets") {
      const LevelTargets targets = ComputeLevelTargets(tree, options);
      std::ostringstream text;
      text << "base L" << targets.base_level;
      for (size_t level = 0; level < tree.size(); ++level) {
        if (targets.target_bytes[level] == 0 && targets.score[level] == 0) continue;
        text << ", L" << level << " " << targets.target_bytes[level] << " score " << targets.score[level];
      }
      return text.str();
    }
    if (question == "debt") return Concat("debt ", CompactionDebtBytes(tree, options));
    if (question == "pick") {
      CompactionLane lane = CompactionLane::kAny;
      if (words >> word) lane = word == "l0" ? CompactionLane::kL0Only : CompactionLane::kDeepOnly;
      return PlanText(PickCompaction(tree, options, cursor_keys, oldest, lane));
    }
    uint32_t level = 0;
    std::string begin, end;
    words >> level >> begin >> end;
    bool busy = false;
    const auto plan = PickManual(tree, options, level, begin == "*" ? std::nullopt : std::optional<std::string_view>(begin),
                                 end == "*" ? std::nullopt : std::optional<std::string_view>(end), &busy);
    return Concat(PlanText(plan), busy ? ", busy" : "");
  }
};

TEST(CompactionPicker, DecidesAsTheScriptSays) {
  testing_support::RunScript("compaction_picker.txt", [](const testing_support::ScriptLines& input) {
    ScriptTree script;
    testing_support::ScriptLines output;
    for (const std::string& line : input) {
      std::istringstream words(line);
      std::string first, word;
      words >> first;
      if (first == "options") {
        while (words >> word) script.Option(word);
      } else if (first == "cursor") {
        size_t level = 0;
        words >> level;
        words >> script.cursor_keys.at(level);
      } else if (first[0] == 'L') {
        script.File(std::stoull(first.substr(1)), words);
      } else {
        output.push_back(script.Ask(first, words));
      }
    }
    return output;
  });
}

// ---- A simulated tree ----

// A table's contents: the newest sequence of each key; odd ones are deletes.
struct SimFile {
  TableMeta meta;
  std::map<std::string, SequenceNumber> entries;
  bool busy = false;
  bool blocked = false;
};

struct Running {
  CompactionPlan plan;
  std::vector<std::shared_ptr<SimFile>> inputs;
};

// Flushes, runs several plans at once and checks after each step that the tree is a legal one that reads right.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {
    options_.levels = static_cast<uint32_t>(2 + random_.Uniform(6));
    options_.size_ratio = static_cast<uint32_t>(2 + random_.Uniform(9));
    options_.level_base_bytes = 10 + random_.Uniform(200);
    options_.target_file_bytes = 5 + random_.Uniform(20);
    options_.l0_trigger = static_cast<uint32_t>(1 + random_.Uniform(4));
    options_.l0_slowdown = options_.l0_trigger + static_cast<uint32_t>(random_.Uniform(8));
    keys_ = 20 + random_.Uniform(400);
    sequential_ = random_.OneIn(4);
    levels_.resize(options_.levels);
    cursor_keys_.resize(options_.levels);
  }

  void Flush() {
    auto file = std::make_shared<SimFile>();
    const uint64_t count = 1 + random_.Uniform(15);
    const uint64_t start = random_.Uniform(keys_);
    const uint64_t span = 1 + random_.Uniform(random_.OneIn(2) ? keys_ : 20);
    const bool deletes = random_.OneIn(5);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t id = sequential_ ? next_key_++ : (start + random_.Uniform(span)) % keys_;
      const std::string key = Key(id);
      sequence_ += 2;
      const bool is_delete = deletes ? !random_.OneIn(3) : random_.OneIn(10);
      file->entries[key] = sequence_ + (is_delete ? 1 : 0);
      newest_[key] = file->entries[key];
    }
    Describe(*file);
    levels_[0].insert(levels_[0].begin(), file);
  }

  // Starts what is due, if something is.
  bool Start(CompactionLane lane) {
    auto plan = PickCompaction(Shape(), options_, cursor_keys_, sequence_ + 1, lane);
    if (!plan) return false;
    Begin(*std::move(plan));
    return true;
  }
  // False: nothing of the range is there (or it is blocked, or busy with a plan that runs).
  bool StartManual(uint32_t level, std::optional<std::string> begin, std::optional<std::string> end) {
    bool busy = false;
    auto plan = PickManual(Shape(), options_, level, begin, end, &busy);
    EXPECT_FALSE(busy && running_.empty()) << "waits for nothing";
    if (!plan) return false;
    EXPECT_FALSE(busy);
    Begin(*std::move(plan));
    return true;
  }

  size_t running() const { return running_.size(); }
  void FinishOne() {
    const size_t which = random_.Uniform(running_.size());
    Running job = running_[which];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
    Install(job);
  }

  // Damages a file: it and what is newer and overlaps must not go on.
  void BlockOne() {
    const uint32_t level = static_cast<uint32_t>(random_.Uniform(levels_.size()));
    if (levels_[level].empty()) return;
    const auto damaged = levels_[level][random_.Uniform(levels_[level].size())];
    if (damaged->busy) return;
    damaged->blocked = true;
    SpreadBlocks();
  }
  // As the engine does after each install: what overlaps a blocked file from above is blocked, too.
  void SpreadBlocks() {
    std::vector<std::shared_ptr<SimFile>> from_below;
    for (size_t level = levels_.size(); level-- > 0;) {
      for (size_t i = levels_[level].size(); i-- > 0;) {
        const auto& file = levels_[level][i];
        for (const auto& blocked : from_below) {
          if (level != 0 && blocked_level_[blocked.get()] == level) continue;
          if (file->meta.smallest <= blocked->meta.largest && blocked->meta.smallest <= file->meta.largest) file->blocked = true;
        }
        if (file->blocked) {
          blocked_level_[file.get()] = level;
          from_below.push_back(file);
        }
      }
    }
  }

  uint64_t TreeBytes() const {
    uint64_t bytes = 0;
    for (const auto& level : levels_) {
      for (const auto& file : level) bytes += file->meta.size;
    }
    return bytes;
  }
  void DeleteEverything() {
    const uint64_t end = sequential_ ? next_key_ : keys_;
    for (uint64_t id = 0; id < end;) {
      auto file = std::make_shared<SimFile>();
      for (uint64_t n = 0; n < 40 && id < end; ++n, ++id) {
        sequence_ += 2;
        file->entries[Key(id)] = newest_[Key(id)] = sequence_ + 1;
      }
      Describe(*file);
      levels_[0].insert(levels_[0].begin(), file);
    }
  }

  void CheckQuiet() const {
    const LevelTargets targets = ComputeLevelTargets(Shape(), options_);
    for (size_t level = 0; level < levels_.size(); ++level) EXPECT_LT(targets.score[level], 1) << "level " << level;
    EXPECT_EQ(CompactionDebtBytes(Shape(), options_), 0u);
  }

  void Check() const {
    std::map<std::string, SequenceNumber> last_seen;
    for (size_t level = 0; level < levels_.size(); ++level) {
      for (size_t i = 0; i < levels_[level].size(); ++i) {
        const SimFile& file = *levels_[level][i];
        if (level > 0 && i > 0) {
          ASSERT_LT(levels_[level][i - 1]->meta.largest, file.meta.smallest) << "overlap in level " << level;
        }
        for (const auto& [key, sequence] : file.entries) {
          const auto [seen, first] = last_seen.emplace(key, sequence);
          if (first) {
            ASSERT_EQ(sequence, newest_.at(key)) << key << " in level " << level;
          } else {
            ASSERT_LT(sequence, seen->second) << key << ": older above newer";
            seen->second = sequence;
          }
        }
      }
    }
    for (const auto& [key, sequence] : newest_) {
      ASSERT_TRUE(sequence % 2 == 1 || last_seen.count(key) == 1) << key << " is lost";
    }
    for (const auto& [key, sequence] : last_seen) ASSERT_LE(sequence, newest_.at(key)) << key;
  }

 private:
  static std::string Key(uint64_t id) {
    const std::string digits = std::to_string(id);
    return std::string(5 - digits.size(), '0') + digits;
  }

  void Describe(SimFile& file) {
    TableMeta& meta = file.meta;
    meta.number = ++number_;
    meta.size = file.entries.size();
    meta.smallest = file.entries.begin()->first;
    meta.largest = file.entries.rbegin()->first;
    meta.entries = meta.distinct_keys = file.entries.size();
    for (const auto& [key, sequence] : file.entries) {
      meta.deletes += sequence % 2;
      meta.largest_sequence = std::max(meta.largest_sequence, sequence);
    }
  }

  TreeShape Shape() const {
    TreeShape tree;
    for (const auto& level : levels_) {
      auto& files = tree.emplace_back();
      for (const auto& file : level) files.push_back({&file->meta, file->busy, file->blocked});
    }
    return tree;
  }

  void Begin(CompactionPlan plan) {
    Running job{std::move(plan), {}};
    uint64_t bytes = 0;
    const auto take = [&](uint32_t level, const std::vector<uint64_t>& numbers) {
      for (uint64_t number : numbers) {
        for (const auto& file : levels_[level]) {
          if (file->meta.number != number) continue;
          EXPECT_FALSE(file->busy || file->blocked);
          file->busy = true;
          bytes += file->meta.size;
          job.inputs.push_back(file);
        }
      }
    };
    take(job.plan.level, job.plan.inputs);
    if (job.plan.level != job.plan.output_level) take(job.plan.output_level, job.plan.output_inputs);
    ASSERT_EQ(job.inputs.size(), job.plan.inputs.size() + job.plan.output_inputs.size());
    ASSERT_EQ(bytes, job.plan.input_bytes);
    if (job.plan.reason == CompactionReason::kLevelSize) cursor_keys_[job.plan.level] = job.inputs.front()->meta.largest;
    if (job.plan.trivial_move) return Install(job);
    running_.push_back(std::move(job));
  }

  bool MayExistBelow(const std::string& key, uint32_t output_level) const {
    for (size_t level = output_level + 1; level < levels_.size(); ++level) {
      for (const auto& file : levels_[level]) {
        if (file->meta.smallest <= key && key <= file->meta.largest) return true;
      }
    }
    return false;
  }

  void Install(const Running& job) {
    for (auto& level : levels_) {
      level.erase(
          std::remove_if(level.begin(), level.end(),
                         [&](const auto& file) { return std::find(job.inputs.begin(), job.inputs.end(), file) != job.inputs.end(); }),
          level.end());
    }
    auto& output = levels_[job.plan.output_level];
    if (job.plan.trivial_move) {
      job.inputs.front()->busy = false;
      output.push_back(job.inputs.front());
    } else {
      std::map<std::string, SequenceNumber> merged;
      for (const auto& file : job.inputs) {
        for (const auto& [key, sequence] : file->entries) merged[key] = std::max(merged[key], sequence);
      }
      auto file = std::make_shared<SimFile>();
      const auto finish = [&] {
        if (file->entries.empty()) return;
        Describe(*file);
        output.push_back(std::move(file));
        file = std::make_shared<SimFile>();
      };
      for (const auto& [key, sequence] : merged) {
        if (sequence % 2 == 1 && !MayExistBelow(key, job.plan.output_level)) continue;
        file->entries[key] = sequence;
        if (file->entries.size() >= options_.target_file_bytes) finish();
      }
      finish();
    }
    std::sort(output.begin(), output.end(), [](const auto& a, const auto& b) { return a->meta.smallest < b->meta.smallest; });
    SpreadBlocks();
  }

  Random random_;
  CompactionOptions options_;
  uint64_t keys_ = 0;
  bool sequential_ = false;
  uint64_t next_key_ = 0;
  uint64_t number_ = 0;
  SequenceNumber sequence_ = 0;
  std::vector<std::vector<std::shared_ptr<SimFile>>> levels_;
  std::vector<std::string> cursor_keys_;
  std::vector<Running> running_;
  std::map<std::string, SequenceNumber> newest_;
  std::map<const SimFile*, size_t> blocked_level_;

 public:
  uint32_t levels() const { return options_.levels; }
  Random& random() { return random_; }
};

void RunRandomSteps(Simulation& simulation, int steps, bool damage) {
  constexpr CompactionLane kLanes[] = {CompactionLane::kAny, CompactionLane::kL0Only, CompactionLane::kDeepOnly};
  for (int step = 0; step < steps; ++step) {
    const uint64_t what = simulation.random().Uniform(12);
    if (what < 3) {
      simulation.Flush();
    } else if (what < 7) {
      simulation.Start(kLanes[simulation.random().Uniform(3)]);
    } else if (what == 7 && simulation.random().OneIn(3)) {
      simulation.StartManual(static_cast<uint32_t>(simulation.random().Uniform(simulation.levels())), std::nullopt, "00100");
    } else if (what == 8 && damage && simulation.random().OneIn(10)) {
      simulation.BlockOne();
    } else if (simulation.running() > 0) {
      simulation.FinishOne();
    }
    simulation.Check();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Runs all that is due, one after the other.
void Settle(Simulation& simulation) {
  while (simulation.running() > 0) simulation.FinishOne();
  int plans = 0;
  while (simulation.Start(CompactionLane::kAny)) {
    ASSERT_LT(++plans, 20000) << "never at rest";
    if (simulation.running() > 0) simulation.FinishOne();
    simulation.Check();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(CompactionPicker, PlansThatRunAtOnceKeepTheTreeInOrderAndComeToRest) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    RunRandomSteps(simulation, 300, false);
    if (HasFatalFailure()) return;
    Settle(simulation);
    if (HasFatalFailure()) return;
    simulation.CheckQuiet();
  }
}

TEST(CompactionPicker, BlockedFilesAreNeverPassedByNewerOnes) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    RunRandomSteps(simulation, 300, true);
    if (HasFatalFailure()) return;
    Settle(simulation);
    if (HasFatalFailure()) return;
  }
}

TEST(CompactionPicker, AManualCompactionOfEverythingAfterDeletingEverythingLeavesNothing) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    RunRandomSteps(simulation, 200, false);
    if (HasFatalFailure()) return;
    simulation.DeleteEverything();
    while (simulation.running() > 0) simulation.FinishOne();
    for (uint32_t level = 0; level < simulation.levels(); ++level) {
      int plans = 0;
      while (simulation.StartManual(level, std::nullopt, std::nullopt)) {
        ASSERT_LT(++plans, 5000);
        if (simulation.running() > 0) simulation.FinishOne();
        simulation.Check();
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(simulation.TreeBytes(), 0u);
  }
}

}  // namespace
}  // namespace tamis::internal
