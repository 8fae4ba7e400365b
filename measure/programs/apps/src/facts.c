/* How this program was made; the Makefile tells. */
#include "app.h"

const char facts_compiler[] = APP_COMPILER;
const char facts_flags[] = APP_FLAGS;
