#include "base/environment.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

namespace tamis::internal {
namespace {

TEST(Clock, NeverGoesBackAndSleepsAtLeastAsLongAsAsked) {
  Clock* const clock = Clock::System();
  const uint64_t before = clock->NowNanos();
  clock->SleepMicros(2000);
  EXPECT_GE(clock->NowNanos() - before, 2'000'000u);
}

TEST(Executor, RunsTheBodyInANamedThreadAndJoins) {
  std::atomic<bool> ran{false};
  std::string name;
  {
    auto thread = Executor::System()->Start("tamis-compaction-7", [&] {
      char text[32] = {};
      pthread_getname_np(pthread_self(), text, sizeof text);
      name = text;
      ran = true;
    });
    ASSERT_NE(thread, nullptr);
  }
  EXPECT_TRUE(ran);
  EXPECT_EQ(name, "tamis-compactio");
}

TEST(Executor, BlocksSignalsButForFaults) {
  sigset_t mask;
  Executor::System()->Start("t", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); }).reset();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE}) EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) EXPECT_EQ(sigismember(&mask, signal), 0) << signal;
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGINT), 0);
}

TEST(RandomSource, SystemIdsDiffer) {
  std::set<Id128> ids;
  for (int i = 0; i < 100; ++i) ids.insert(RandomSource::System()->NextId128());
  EXPECT_EQ(ids.size(), 100u);
}

TEST(RandomSource, SeededRepeats) {
  const auto a = RandomSource::Seeded(5), b = RandomSource::Seeded(5), c = RandomSource::Seeded(6);
  for (int i = 0; i < 10; ++i) {
    const uint64_t next = a->Next64();
    EXPECT_EQ(next, b->Next64());
    EXPECT_NE(next, c->Next64());
  }
}

TEST(RandomSource, FillsOddLengths) {
  const auto source = RandomSource::Seeded(1);
  std::vector<uint8_t> bytes(13);
  std::vector<bool> changed(13);
  for (int i = 0; i < 50; ++i) {
    source->Fill(absl::MakeSpan(bytes));
    for (size_t k = 0; k < bytes.size(); ++k) changed[k] = changed[k] || bytes[k] != 0;
  }
  EXPECT_EQ(std::count(changed.begin(), changed.end(), true), 13);
}

TEST(Environment, SystemIsComplete) {
  const Environment environment = Environment::System();
  EXPECT_NE(environment.files, nullptr);
  EXPECT_NE(environment.clock, nullptr);
  EXPECT_NE(environment.executor, nullptr);
  EXPECT_NE(environment.random, nullptr);
}

}  // namespace
}  // namespace tamis::internal
