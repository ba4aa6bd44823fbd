#include "tamis/db.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto db = tamis::DB::Open(tamis::Options(), argv[1]);
  std::string value;
  if (!db.ok() || !(*db)->Put("key", "value").ok() || !(*db)->Get("key", &value).ok()) return 1;
  if (value != "value" || !absl::IsNotFound((*db)->Get("absent", &value))) return 1;
  return (*db)->Close().ok() ? 0 : 1;
}
