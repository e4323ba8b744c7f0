/* shared.c - the state that the copies of the core in one process share. */
#include "shared.h"

ps_shared ps_shared_own(void) {
    return (ps_shared){.pool = ps_pool_own(),
                       .zstd = ps_zstd_own(),
                       .zlib = ps_zlib_own(),
                       .brotli = ps_brotli_own()};
}

void ps_shared_use(const ps_shared *shared) {
    ps_pool_share(shared->pool);
    ps_zstd_share(shared->zstd);
    ps_zlib_share(shared->zlib);
    ps_brotli_share(shared->brotli);
}
