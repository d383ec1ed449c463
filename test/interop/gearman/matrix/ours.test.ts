// Only in test:all: it compiles programs of libgearman.
import { testServer } from './matrix.ts';
import { SERVERS } from './servers.ts';

await testServer('ours', SERVERS.ours);
