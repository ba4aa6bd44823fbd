#include "base/epoch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kAlive = 0x600d'600d'600d'600d;

struct Object {
  explicit Object(std::atomic<int>* count) : living(count) { ++*living; }
  ~Object() {
    stamp = 0;
    --*living;
  }
  uint64_t stamp = kAlive;
  uint64_t payload[6] = {};
  std::atomic<int>* living;
};

class EpochTest : public ::testing::Test {
 protected:
  ~EpochTest() override {
    EpochSynchronize();
    EXPECT_EQ(living_, 0);
  }
  void Replace(std::atomic<Object*>* pointer) {
    Object* const old = pointer->exchange(new Object(&living_));
    EpochRetire([old] { delete old; });
  }
  std::atomic<int> living_{0};
};

TEST_F(EpochTest, NothingIsFreedWhileAnEarlierGuardIsHeld) {
  bool freed = false;
  {
    EpochGuard guard;
    EpochRetire([&] { freed = true; });
    EpochReclaim();
    EXPECT_FALSE(freed);
    {
      EpochGuard nested;
      EpochReclaim();
    }
    EpochReclaim();
    EXPECT_FALSE(freed) << "the end of a nested guard ended the outer one";
  }
  EpochReclaim();
  EXPECT_TRUE(freed);
}

TEST_F(EpochTest, AGuardOfAnotherThreadHoldsBackOnlyWhatWasRetiredLater) {
  std::latch entered(1), leave(1);
  bool before = false, after = false;
  std::thread reader;
  EpochRetire([&] { before = true; });
  reader = std::thread([&] {
    EpochGuard guard;
    entered.count_down();
    leave.wait();
  });
  entered.wait();
  EpochRetire([&] { after = true; });
  EpochReclaim();
  EXPECT_TRUE(before);
  EXPECT_FALSE(after);
  leave.count_down();
  reader.join();
  EpochReclaim();
  EXPECT_TRUE(after);
}

TEST_F(EpochTest, SynchronizeWaitsForGuardsHeldAtTheCall) {
  std::latch entered(1);
  std::atomic<bool> left{false};
  std::thread reader([&] {
    EpochGuard guard;
    entered.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = true;
  });
  entered.wait();
  bool freed = false;
  EpochRetire([&] { freed = true; });
  EpochSynchronize();
  EXPECT_TRUE(left);
  EXPECT_TRUE(freed);
  reader.join();
}

TEST_F(EpochTest, SynchronizeWaitsForWhatAnotherThreadIsRunning) {
  std::latch started(1);
  std::atomic<bool> finished{false};
  EpochRetire([&] {
    started.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    finished = true;
  });
  std::thread other([] { EpochReclaim(); });
  started.wait();
  EpochSynchronize();
  EXPECT_TRUE(finished);
  other.join();
}

TEST_F(EpochTest, RetiredFunctionsMayRetireMore) {
  int freed = 0;
  EpochRetire([&] {
    for (int i = 0; i < 200; ++i) EpochRetire([&] { ++freed; });
    ++freed;
  });
  EpochSynchronize();
  EXPECT_GE(freed, 1);
  EpochSynchronize();
  EXPECT_EQ(freed, 201);
}

TEST_F(EpochTest, RetiringReclaimsOnItsOwn) {
  std::atomic<Object*> pointer{new Object(&living_)};
  int most = 0;
  for (int i = 0; i < 10'000; ++i) {
    Replace(&pointer);
    most = std::max(most, living_.load());
  }
  EXPECT_LT(most, 200);
  delete pointer.load();
}

// Readers look at objects that others replace as fast as they can. A freed one shows by its stamp, and under the sanitizers.
void Stress(int readers, int replacers, std::chrono::milliseconds time, std::atomic<int>* living) {
  std::atomic<Object*> pointers[4];
  for (auto& pointer : pointers) pointer = new Object(living);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> bad{0}, reads{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < readers; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t));
      uint64_t count = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        EpochGuard guard;
        for (int i = 0; i < 3; ++i) {
          const Object* const object = pointers[random.Uniform(4)].load(std::memory_order_acquire);
          EpochGuard nested;
          if (random.OneIn(1000)) std::this_thread::yield();
          if (object->stamp != kAlive) ++bad;
          ++count;
        }
      }
      reads += count;
    });
  }
  for (int t = 0; t < replacers; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(1000 + t));
      while (!stop.load(std::memory_order_relaxed)) {
        Object* const old = pointers[random.Uniform(4)].exchange(new Object(living));
        EpochRetire([old] { delete old; });
        if (random.OneIn(100)) EpochReclaim();
        if (random.OneIn(5000)) EpochSynchronize();
      }
    });
  }
  std::this_thread::sleep_for(time);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0u);
  EXPECT_GT(reads, 0u);
  for (auto& pointer : pointers) delete pointer.load();
}

TEST_F(EpochTest, ReadersNeverSeeAFreedObject) { Stress(4, 2, std::chrono::milliseconds(500), &living_); }

TEST_F(EpochTest, WorksWithMoreThreadsThanSlots) {
  constexpr int kThreads = 600;  // 512 slots
  std::atomic<Object*> pointer{new Object(&living_)};
  std::latch entered(kThreads), leave(1);
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        EpochGuard guard;
        if (pointer.load(std::memory_order_acquire)->stamp != kAlive) ++bad;
      }
      EpochGuard guard;
      const Object* const object = pointer.load(std::memory_order_acquire);
      entered.count_down();
      leave.wait();
      if (object->stamp != kAlive) ++bad;
    });
  }
  while (!entered.try_wait()) {
    Replace(&pointer);
    std::this_thread::yield();
  }
  EpochReclaim();
  const int held = living_;
  for (int i = 0; i < 1000; ++i) Replace(&pointer);
  EXPECT_EQ(living_, held + 1000) << "freed while every thread was in a guard";
  leave.count_down();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EpochSynchronize();
  EXPECT_EQ(living_, 1);
  delete pointer.load();
}

TEST_F(EpochTest, StressWithMoreThreadsThanSlots) {
  std::latch leave(1), entered(520);
  std::vector<std::thread> holders;
  for (int t = 0; t < 520; ++t) {
    holders.emplace_back([&] {
      { EpochGuard guard; }
      entered.count_down();
      leave.wait();
    });
  }
  entered.wait();
  Stress(3, 1, std::chrono::milliseconds(200), &living_);  // its threads find no slot
  leave.count_down();
  for (std::thread& thread : holders) thread.join();
}

TEST_F(EpochTest, TenThousandShortThreadsLeaveNothingBehind) {
  std::atomic<Object*> pointer{new Object(&living_)};
  std::atomic<int> bad{0};
  for (int i = 0; i < 10'000; i += 4) {
    std::thread threads[4];
    for (std::thread& thread : threads) {
      thread = std::thread([&] {
        EpochGuard guard;
        if (pointer.load(std::memory_order_acquire)->stamp != kAlive) ++bad;
      });
    }
    Replace(&pointer);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(bad, 0);
  EpochSynchronize();
  EXPECT_EQ(living_, 1);
  delete pointer.load();
}

// Runs `body` in a child; fails if it does not end well within 10 s.
template <typename Body>
void InChild(Body body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(EpochTest, AChildDoesNotWaitForGuardsOfTheParentsThreads) {
  std::latch entered(1), leave(1);
  std::thread reader([&] {
    EpochGuard guard;
    entered.count_down();
    leave.wait();
  });
  entered.wait();
  InChild([] {
    bool freed = false;
    EpochRetire([&] { freed = true; });
    EpochSynchronize();
    return freed;
  });
  leave.count_down();
  reader.join();
}

TEST_F(EpochTest, AChildKeepsTheGuardOfTheForkingThread) {
  EpochGuard guard;
  InChild([] {
    bool freed = false;
    EpochRetire([&] { freed = true; });
    EpochReclaim();
    return !freed;
  });
}

TEST_F(EpochTest, ForkingUnderLoadLeavesNoLockHeld) {
  std::atomic<bool> stop{false};
  std::thread replacer([&] {
    while (!stop) EpochRetire([] {});
  });
  for (int i = 0; i < 20; ++i) {
    InChild([] {
      EpochRetire([] {});
      EpochSynchronize();
      return true;
    });
  }
  stop = true;
  replacer.join();
}

}  // namespace
}  // namespace tamis::internal
