import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobServer, Worker } from '@nodepool-builder/gearman-node';
import { submitTo } from '../../src/site/control-jobs.ts';

test('a builder that does not reply in time is named, and the error is not a cancellation', async (t) => {
  const server = new JobServer();
  t.after(() => server.close());
  const address = await server.listen(0);
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close({ signal: AbortSignal.abort() }));
  const started = Promise.withResolvers<void>();
  worker.setFunctions(
    new Map([
      [
        'image-log:docs-1',
        async (job) => {
          started.resolve();
          await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
        },
      ],
    ]),
  );
  const { signal } = new AbortController();
  const reply = submitTo([address], 'image-log:docs-1', '', 1500, signal);
  await Promise.all([
    started.promise,
    assert.rejects(reply, {
      exitReason: 'unreachable',
      message:
        'the builder 127.0.0.1 did not reply to image-log:docs-1 within 1.5 s; try again, or restart it if it hangs',
    }),
  ]);
});
