#pragma once
/// How many declarations were held against the real headers (at compile time).
int cvips_checked_declarations(void);
