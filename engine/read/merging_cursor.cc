// A tournament of n inputs. Invariants, whenever valid_:
//   M1  Forward: every input is at its first entry at or after the current one, or past its end; backward: at its last entry at or
//       before it, or before its start. The winner is at the current entry.
//   M2  tree_[1..n) holds the losers: tree_[v] is the input that lost at node v; input i enters at node (i + n) / 2. So replacing the
//       winner costs one comparison a level.
//   M3  rank of an input = the 8 bytes after the first shared_.size() bytes of its key as a big-endian number (complemented when
//       backward) if the key starts with shared_; else, and at its end, kLastRank. An input has left shared_ only in the direction of
//       travel, so it comes after all that have not: comparing ranks orders the inputs up to ties, and ties are compared in full.
//
// shared_ makes ranks tell keys apart that have a long prefix in common (fixed-width numbers, paths). When the winner itself has left
// it, all have, and it is chosen anew.
#include "engine/read/merging_cursor.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "engine/read/key_equal.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kLastRank = ~uint64_t{0};
constexpr size_t kSharedLeast = 8;

class MergingCursor final : public Cursor {
 public:
  explicit MergingCursor(std::vector<std::unique_ptr<Cursor>> inputs)
      : inputs_(std::move(inputs)), count_(static_cast<uint32_t>(inputs_.size())), tree_(count_) {}

  void SeekToFirst() override {
    SeekAll(true, [](Cursor& input) { input.SeekToFirst(); });
  }
  void SeekToLast() override {
    SeekAll(false, [](Cursor& input) { input.SeekToLast(); });
  }
  void Seek(std::string_view user_key, SequenceNumber sequence) override {
    for (const auto& input : inputs_) input->PrepareSeek(user_key, sequence);
    SeekAll(true, [=](Cursor& input) { input.Seek(user_key, sequence); });
  }
  void SeekForPrev(std::string_view user_key, SequenceNumber sequence) override {
    SeekAll(false, [=](Cursor& input) { input.SeekForPrev(user_key, sequence); });
  }

  void Next() override {
    if (!valid_) return;
    if (!forward_) return Turn(true);
    inputs_[winner_.input]->Next();
    AfterMove();
  }
  void Prev() override {
    if (!valid_) return;
    if (forward_) return Turn(false);
    inputs_[winner_.input]->Prev();
    AfterMove();
  }

  absl::Status status() const override { return status_; }

 private:
  struct Player {
    uint64_t rank = kLastRank;
    uint64_t input = 0;
  };

  // Without a branch: which of two random runs comes first cannot be predicted.
  static void SwapIf(bool swap, Player& a, Player& b) {
    const uint64_t mask = uint64_t{0} - static_cast<uint64_t>(swap);
    const uint64_t rank = (a.rank ^ b.rank) & mask;
    const uint64_t input = (a.input ^ b.input) & mask;
    a = {a.rank ^ rank, a.input ^ input};
    b = {b.rank ^ rank, b.input ^ input};
  }

  template <typename Move>
  void SeekAll(bool forward, Move move) {
    forward_ = forward;
    status_ = absl::OkStatus();
    shared_limit_ = kMaxKeyBytes;
    shared_.clear();
    for (const auto& input : inputs_) {
      move(*input);
      if (!input->Valid() && !Succeeded(*input)) return;
    }
    Rebuild();
  }

  // Changes direction at the current entry: the others go to its other side. The winner moves last, since its bytes are the target.
  void Turn(bool forward) {
    forward_ = forward;
    shared_.clear();
    Cursor& current = *inputs_[winner_.input];
    for (uint32_t i = 0; i < count_; ++i) {
      if (i == winner_.input) continue;
      Cursor& input = *inputs_[i];
      if (forward) {
        input.Seek(current.key(), current.sequence());
      } else {
        input.SeekForPrev(current.key(), current.sequence());
      }
      if (!input.Valid() && !Succeeded(input)) return;
    }
    if (forward) {
      current.Next();
    } else {
      current.Prev();
    }
    if (!current.Valid() && !Succeeded(current)) return;
    Rebuild();
  }

  // The winner has moved by one in the direction of travel.
  void AfterMove() {
    Cursor& moved = *inputs_[winner_.input];
    if (!moved.Valid() && !Succeeded(moved)) return;
    Player player{RankOf(moved), winner_.input};
    for (uint64_t node = (player.input + count_) / 2; node != 0; node /= 2) {
      SwapIf(Before(tree_[node], player), tree_[node], player);
    }
    winner_ = player;
    ++moves_;
    const Cursor& current = *inputs_[player.input];
    if (player.rank == kLastRank && current.Valid() && !StartsWithShared(current.key())) return Rebuild();
    Publish();
  }

  void Publish() {
    const Cursor& current = *inputs_[winner_.input];
    valid_ = current.Valid();
    entry_ = current.entry();
  }

  bool Succeeded(const Cursor& input) {
    absl::Status status = input.status();
    if (status.ok()) return true;
    status_ = std::move(status);
    valid_ = false;
    return false;
  }

  bool StartsWithShared(std::string_view key) const {
    return key.size() >= shared_.size() && BytesEqual(key.data(), shared_.data(), shared_.size());
  }

  uint64_t RankOf(const Cursor& input) const {
    if (!input.Valid()) return kLastRank;
    std::string_view key = input.key();
    if (!shared_.empty()) {
      if (!StartsWithShared(key)) return kLastRank;
      key.remove_prefix(shared_.size());
    }
    const uint64_t prefix = LoadBigPrefix(key);
    return forward_ ? prefix : ~prefix;
  }

  bool Before(const Player& a, const Player& b) const {
    if (__builtin_expect(a.rank == b.rank, 0)) return BeforeOnTie(a.input, b.input);
    return a.rank < b.rank;
  }
  // Whether input a comes before input b in the direction of travel, whatever their ranks.
  bool BeforeOnTie(uint64_t a, uint64_t b) const {
    const Cursor& left = *inputs_[a];
    const Cursor& right = *inputs_[b];
    if (!left.Valid() || !right.Valid()) return left.Valid();
    const int order = CompareInternalKeys(left.key(), left.sequence(), right.key(), right.sequence());
    return forward_ ? order < 0 : order > 0;
  }

  // Chooses shared_ from the inputs' keys, then plays the whole tournament.
  void Rebuild() {
    ChooseShared();
    // players[v], v >= count_, enter; players[v] below is the winner at v.
    players_.resize(2 * size_t{count_});
    bool any = false;
    for (uint32_t i = 0; i < count_; ++i) {
      any = any || inputs_[i]->Valid();
      players_[count_ + i] = {RankOf(*inputs_[i]), i};
    }
    if (!any) {
      valid_ = false;
      return;
    }
    for (uint32_t node = count_ - 1; node != 0; --node) {
      Player a = players_[2 * size_t{node}];
      Player b = players_[2 * size_t{node} + 1];
      SwapIf(Before(b, a), a, b);
      players_[node] = a;
      tree_[node] = b;
    }
    winner_ = players_[1];
    Publish();
  }

  // The keys' common prefix less 4 bytes: 4 of the 8 rank bytes are left for what the keys have in common now but not for long. If it
  // nevertheless lasted for less than 16 moves an input, the next one is at most half as long: keys of which several versions come at
  // once have nearly all in common, at each new key something else.
  void ChooseShared() {
    if (!shared_.empty() && moves_ < 16 * uint64_t{count_}) shared_limit_ = std::min(shared_limit_, shared_.size() / 2);
    moves_ = 0;
    shared_.clear();
    const Cursor* first = nullptr;
    size_t common = 0;
    for (const auto& input : inputs_) {
      if (!input->Valid()) continue;
      if (first == nullptr) {
        first = input.get();
        common = first->key().size();
        continue;
      }
      const std::string_view a = first->key().substr(0, common);
      const std::string_view b = input->key();
      common = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    }
    // Less than 8 bytes are not worth the check.
    const size_t length = std::min(common < kSharedLeast + 4 ? std::min(common, kSharedLeast) : common - 4, shared_limit_);
    if (length >= kSharedLeast) shared_.assign(first->key().substr(0, length));
  }

  const std::vector<std::unique_ptr<Cursor>> inputs_;
  const uint32_t count_;
  bool forward_ = true;
  Player winner_;
  std::vector<Player> tree_;
  std::string shared_;
  size_t shared_limit_ = kMaxKeyBytes;
  uint64_t moves_ = 0;           // since shared_ was chosen
  std::vector<Player> players_;  // scratch of Rebuild
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Cursor> NewMergingCursor(std::vector<std::unique_ptr<Cursor>> inputs) {
  if (inputs.empty()) return NewEmptyCursor();
  if (inputs.size() == 1) return std::move(inputs.front());
  return std::make_unique<MergingCursor>(std::move(inputs));
}

}  // namespace tamis::internal
