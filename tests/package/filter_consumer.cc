#include "tamis/filter.h"

int main() {
  auto builder = tamis::FilterBuilder::Create(tamis::FilterBuildOptions());
  if (!builder.ok()) return 1;
  for (int i = 0; i < 1000; ++i) (*builder)->AddHash(tamis::FilterKeyHash(std::to_string(i), 0));
  auto bytes = (*builder)->Finish();
  auto filter = bytes.ok() ? tamis::FilterView::Open(bytes->view(), {}) : bytes.status();
  return filter.ok() && filter->MayContain(tamis::FilterKeyHash("7", 0)) ? 0 : 1;
}
