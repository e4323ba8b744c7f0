/* shared.h - the parts of the state that copies of the core share. Internal; callers use ps_shared. */
#ifndef PAGESEEK_SHARED_H
#define PAGESEEK_SHARED_H

#include "base.h"

/* The state of this copy. It lives as long as the process. */
ps_pool *ps_pool_own(void);
ps_zstd_state *ps_zstd_own(void);
ps_zlib_state *ps_zlib_own(void);
ps_brotli_state *ps_brotli_own(void);
/* From now on this copy uses the state of another. */
void ps_pool_share(ps_pool *pool);
void ps_zstd_share(ps_zstd_state *state);
void ps_zlib_share(ps_zlib_state *state);
void ps_brotli_share(ps_brotli_state *state);

#endif
