/**
 * Node.js preloads this into each process of `npm run bench:… -- --profile`. Each process and each thread writes its
 * profile into the directory BENCH_PROFILES when it ends, in a file named after the program.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename, join } from 'node:path';
import { isMainThread, threadId } from 'node:worker_threads';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.start');

process.once('exit', () => {
  const program = basename(process.argv[1] ?? 'node');
  const file = `${isMainThread ? program : `${program} thread`}.${process.pid}-${threadId}.cpuprofile`;
  session.post('Profiler.stop', (error, { profile }) => {
    if (error !== null) throw error;
    writeFileSync(join(process.env.BENCH_PROFILES ?? '', file), JSON.stringify(profile));
  });
});

// Without a handler, SIGTERM would end the program before it writes its profile.
if (isMainThread) process.once('SIGTERM', () => process.listenerCount('SIGTERM') > 0 || process.exit(143));
