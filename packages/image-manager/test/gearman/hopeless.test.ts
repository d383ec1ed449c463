import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admin, JobServer } from '@nodepool-builder/gearman-node';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { BuilderFleet } from '../../src/gearman/builder-fleet.ts';
import { Hopeless } from '../../src/gearman/hopeless.ts';

test('a job that is hopeless is taken out of the queue; one that is left for another reason waits on', async (t) => {
  const server = new JobServer();
  t.after(() => server.close());
  const address = await server.listen(0);
  const fleet = new BuilderFleet({ servers: [address], logger: new RecordingLogger() });
  t.after(() => fleet.close());
  const admin = new Admin(address);
  t.after(() => admin.close());
  const jobs = async (): Promise<number> => {
    const states = await admin.status();
    return states.reduce((sum, { total }) => sum + total, 0);
  };

  const [hopeless, stopped] = [new AbortController(), new AbortController()];
  const runs = Object.entries({ hopeless, stopped }).map(([unique, { signal }]) =>
    fleet.run('image-upload:a', {}, unique, { time: 60, signal }),
  );
  await waitUntil('both in the queue', async () => (await jobs()) === 2);
  stopped.abort(new Error('the manager is being stopped'));
  hopeless.abort(new Hopeless('no builder has offered image a for 1800 s'));
  await Promise.all(runs.map((run) => assert.rejects(run)));
  assert.equal(await jobs(), 1);
});
