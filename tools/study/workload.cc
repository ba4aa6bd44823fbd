#include "tools/study/workload.h"

#include <algorithm>
#include <cmath>

namespace tamis::tools {
namespace {

// Keys that are looked up most shall not be those written last, which lie in the upper levels: ranks are spread by a prime.
constexpr uint64_t kSpread = 2654435761;

void PutBytes(uint64_t number, char* to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(number >> (8 * i));
}

uint64_t AbsentPool(const LookupMix& mix) {
  switch (mix.absent_kind) {
    case AbsentKind::kDeleted:
      return std::max<uint64_t>(mix.deleted_keys, 1);
    case AbsentKind::kAgainst:
      return mix.against->size();
    default:
      return mix.keys;
  }
}

}  // namespace

ZipfRanks::ZipfRanks(uint64_t n, double theta) : n_(n), theta_(theta) {
  if (theta_ == 0) return;
  first_ = Integral(1.5) - 1;
  last_ = Integral(static_cast<double>(n_) + 0.5);
  accept_ = 2 - InverseIntegral(Integral(2.5) - std::pow(2, -theta_));
}

double ZipfRanks::Integral(double x) const {
  const double power = 1 - theta_;
  return power == 0 ? std::log(x) : (std::pow(x, power) - 1) / power;
}

double ZipfRanks::InverseIntegral(double y) const {
  const double power = 1 - theta_;
  return power == 0 ? std::exp(y) : std::pow(std::max(0.0, 1 + y * power), 1 / power);
}

uint64_t ZipfRanks::Next(Random* random) const {
  if (theta_ == 0) return random->Uniform(n_);
  while (true) {
    const double u = last_ + random->UniformReal() * (first_ - last_);
    const double x = InverseIntegral(u);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (rank - x <= accept_ || u >= Integral(rank + 0.5) - std::pow(rank, -theta_)) return static_cast<uint64_t>(rank) - 1;
  }
}

void StudyKey(uint64_t seed, uint64_t index, std::string* key) {
  const uint64_t first = Mix(Mix(seed) + index);  // a bijection: these 8 bytes alone tell all keys apart
  key->resize(kStudyKeyBytes);
  (*key)[0] = 'k';
  PutBytes(first, key->data() + 1, 8);
  PutBytes(Mix(first ^ 0x6a09e667f3bcc909), key->data() + 9, kStudyKeyBytes - 9);
}

void StudyValue(uint64_t seed, uint64_t index, std::string* value) {
  value->resize(kStudyValueBytes);
  Random random(seed ^ Mix(index));
  constexpr size_t kHalf = kStudyValueBytes / 2;
  for (size_t i = 0; i < kHalf; i += 8) PutBytes(random.Next(), value->data() + i, std::min<size_t>(8, kHalf - i));
  std::copy_n(value->data(), kHalf, value->data() + kHalf);
}

LookupStream::LookupStream(const LookupMix& mix, uint64_t seed, uint64_t stream)
    : mix_(mix),
      seed_(seed),
      random_(Mix(seed) + stream),
      present_(mix.keys, mix.zipf_theta),
      absent_(AbsentPool(mix), mix.zipf_theta),
      fresh_(kFirstAbsentKey + (stream << 32)) {}

bool LookupStream::Next(std::string* key) {
  if (100 * random_.UniformReal() < mix_.absent_percent) {
    NextAbsent(key);
    return false;
  }
  StudyKey(seed_, present_.Next(&random_) * kSpread % mix_.keys, key);
  return true;
}

void LookupStream::NextAbsent(std::string* key) {
  const uint64_t rank = absent_.Next(&random_);
  switch (mix_.absent_kind) {
    case AbsentKind::kFar:
    case AbsentKind::kBetween:
      StudyKey(seed_, mix_.zipf_theta == 0 ? fresh_++ : kFirstAbsentKey + rank, key);
      if (mix_.absent_kind == AbsentKind::kFar) (*key)[0] = 'z';
      return;
    case AbsentKind::kPrefix:
      StudyKey(seed_, rank * kSpread % mix_.keys, key);
      key->push_back('/');
      return;
    case AbsentKind::kDeleted:
      StudyKey(seed_, mix_.keys + rank, key);
      return;
    case AbsentKind::kAgainst:
      *key = (*mix_.against)[rank];
      return;
  }
}

}  // namespace tamis::tools
