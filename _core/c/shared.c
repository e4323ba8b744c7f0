/* shared.c - the state that the copies of the core in one process share. */
#include "shared.h"

ps_shared ps_shared_own(void) {
    return (ps_shared){.pool = ps_pool_own(), .zstd = ps_zstd_own()};
}

void ps_shared_use(const ps_shared *shared) {
    ps_pool_share(shared->pool);
    ps_zstd_share(shared->zstd);
}
