import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Admin, Client, JobServer, Worker } from '@nodepool-builder/gearman-node';
import { SubmittedJob } from '../../packages/gearman-node/src/client/submitted-job.ts';
import { AssignedJob } from '../../packages/gearman-node/src/worker/worker-job.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/migrating-to-gearman-node.md');
const [workerProgram = '', clientProgram = '', ...others] = codeBlocks(page, 'ts');

/** Classes by the names that the page uses for their instances. */
const CLASSES = new Map<string, abstract new (...args: never[]) => object>([
  ['client', Client],
  ['worker', Worker],
  ['admin', Admin],
  ['submitted', SubmittedJob],
  ['job', AssignedJob],
]);

function start(t: TestContext, program: string, port: number) {
  const child = spawn(
    process.execPath,
    [
      '--conditions=@nodepool-builder/source',
      '--disable-warning=ExperimentalWarning',
      '--input-type=module-typescript',
      '--eval',
      program.replaceAll('4730', String(port)),
    ],
    { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  undoAfter(t, () => child.kill('SIGKILL'));
  return child;
}

test('the programs in docs/migrating-to-gearman-node.md work', async (t) => {
  assert.deepEqual(others, []);
  const server = new JobServer();
  undoAfter(t, () => server.close());
  const { port } = await server.listen(0);
  const worker = start(t, workerProgram, port);
  const client = start(t, clientProgram, port);
  const [printed, [status]] = await Promise.all([text(client.stdout), once(client, 'exit')]);
  assert.equal(status, 0);
  assert.equal(printed, '1 of 2\ndata half; \nSOME TEXT\nfailed\nboolean\nupper number\n');
  worker.kill('SIGTERM');
  assert.deepEqual(await once(worker, 'exit'), [0, null]);
});

test('docs/migrating-to-gearman-node.md names only existing methods', () => {
  const ours = [...page.matchAll(/^\|.*?\|(.*?)\|/gm)].map(([, cell = '']) => cell).join();
  const names = [...ours.matchAll(/`(?:await )?(client|worker|admin|submitted|job)\.(\w+)/g)];
  assert.ok(names.length > 50);
  const missing = names.filter(([, object = '', name = '']) => {
    const named = CLASSES.get(object);
    assert.ok(named);
    // Fields such as job.payload are set in the constructor, and are not on the prototype.
    return !(name in named.prototype) && !named.toString().includes(`this.${name} =`);
  });
  assert.deepEqual(
    missing.map(([match]) => match),
    [],
  );
});
