/// 06 Nov 1994 08:49:37, the time at which fuzzed responses arrive.
let fuzzedTime = 784_111_777.0
let fuzzedDate = "Sun, 06 Nov 1994 08:49:37 GMT"
