import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Build, ManagerState, Upload } from '@nodepool-builder/image-manager';
import { createAjv } from '../../../../image-builder/src/json-reader.ts';
import { RunningJobs } from '../../../src/daemon/jobs/running-jobs.ts';
import { EVENT_SCHEMA, JobEvents, makeEvent } from '../../../src/daemon/notifications/event.ts';
import { eventOfEnd, newestImages } from '../../../src/daemon/notifications/manager-events.ts';
import { CancelledError } from '../../../src/protocol/job-reply.ts';

const BUILD: Build = {
  id: 'debian-1',
  diskimage: 'debian',
  state: 'ready',
  configuration: 'c',
  reason: 'it was time',
  requestedAt: 1000,
  endedAt: 5000,
  withdrawn: false,
};
const FAILED = { ...BUILD, id: 'debian-0', state: 'failed', endedAt: 4000, error: 'full' } as const;
const UPLOAD: Upload = {
  id: 'u1',
  imageId: 'debian-1',
  diskimage: 'debian',
  provider: 'west',
  imageName: 'deb',
  state: 'ready',
  externalId: 'e-1',
  reason: 'the provider lacks it',
  requestedAt: 6000,
  endedAt: 7000,
  leftovers: false,
  seen: true,
};

function stateOf(builds: readonly Build[], uploads: readonly Upload[] = []): ManagerState {
  return {
    builds: new Map(builds.map((build) => [build.id, build])),
    uploads: new Map(uploads.map((upload) => [upload.id, upload])),
    pauses: new Map(),
  };
}

function kindOfBuild(build: Build, ...others: readonly Build[]): string | undefined {
  return eventOfEnd(build, stateOf([build, ...others])).event;
}

describe('the event of a build', () => {
  it('a build’s event distinguishes a success from the first one after a failure', () => {
    assert.equal(kindOfBuild(BUILD), 'build-succeeded');
    assert.equal(kindOfBuild(BUILD, FAILED), 'build-recovered');
    assert.equal(kindOfBuild(BUILD, { ...FAILED, diskimage: 'fedora' }), 'build-succeeded');
    const between = { ...BUILD, id: 'debian-00', endedAt: 4500 };
    assert.equal(kindOfBuild(BUILD, FAILED, between), 'build-succeeded');
    assert.equal(kindOfBuild(BUILD, { ...FAILED, cancelledBy: 'root@a' }), 'build-succeeded');
  });

  it('a build’s event has the reason for a failure, and who cancelled it', () => {
    const failed = eventOfEnd(FAILED, stateOf([FAILED]));
    assert.partialDeepStrictEqual(failed, { event: 'build-failed', error: 'full', 'cancelled-by': null });
    const cancelled = { ...FAILED, cancelledBy: 'root@a' };
    assert.equal(eventOfEnd(cancelled, stateOf([cancelled])).event, 'build-cancelled');
    const text = makeEvent(eventOfEnd(cancelled, stateOf([cancelled]))).text;
    assert.equal(text, 'build debian-0 of debian was cancelled by root@a');
  });
});

describe('the event of an upload', () => {
  it('an upload’s event reports recovery from a failure in the same provider only', () => {
    const failed = { ...UPLOAD, id: 'u0', state: 'failed', endedAt: 6500, error: 'quota' } as const;
    const kind = (other: Upload): string | undefined =>
      eventOfEnd(UPLOAD, stateOf([BUILD], [UPLOAD, other])).event;
    assert.equal(kind(failed), 'upload-recovered');
    assert.equal(kind({ ...failed, provider: 'east' }), 'upload-succeeded');
    assert.equal(kind({ ...failed, imageName: 'other' }), 'upload-succeeded');
  });

  it('an upload’s event conforms to its JSON Schema, and says where the image is', () => {
    const facts = eventOfEnd(UPLOAD, stateOf([BUILD], [UPLOAD]));
    const event = makeEvent(facts);
    const isValid = createAjv({ allowUnionTypes: true, strictTypes: false }).compile(EVENT_SCHEMA);
    assert.ok(isValid(event), JSON.stringify(isValid.errors));
    assert.partialDeepStrictEqual(event, {
      id: 'upload/u1/succeeded',
      time: '1970-01-01T00:00:07.000Z',
      provider: 'west',
      'image-name': 'deb',
      'external-id': 'e-1',
      text: 'upload of debian-1 to west is ready',
    });
  });
});

describe('the newest image of each provider', () => {
  const images = [{ name: 'deb', diskimage: 'debian', pause: false }];
  type Site = Parameters<typeof newestImages>[0];
  const site = (changes: object = {}, entry: object = {}): Site =>
    ({
      diskimages: [{ name: 'debian', pause: false, ...changes }],
      providers: [{ name: 'west', entry: { pause: false, images, ...entry } }],
    }) as unknown as Site;

  it('the newest image of each provider has its build’s age', () => {
    const older = { ...UPLOAD, id: 'u0', imageId: 'debian-0' };
    const state = stateOf([BUILD, { ...FAILED, state: 'ready', requestedAt: 500 }], [older, UPLOAD]);
    const [newest, ...others] = newestImages(site(), state, 3_601_000);
    assert.deepEqual(others, []);
    assert.partialDeepStrictEqual(newest, { 'image-id': 'debian-1', age: 3600, id: 'image-too-old/u1' });
    assert.equal(
      makeEvent(newest ?? assert.fail()).text,
      'image deb in west is 1 h old: the newest one is debian-1',
    );
  });

  it('the newest image of a provider is not reported as old where updates are paused', () => {
    const state = stateOf([BUILD], [UPLOAD]);
    assert.deepEqual([...newestImages(site({ pause: true }), state, 9e9)], []);
    assert.deepEqual([...newestImages(site({}, { pause: true }), state, 9e9)], []);
  });
});

describe('the events of jobs', () => {
  const job = { kind: 'build', 'image-id': 'debian-1', diskimage: 'debian', isInterrupted: false } as const;
  const foreign = { ...job, payload: Buffer.from('{"image-id": "debian-1"}') };

  it('a daemon’s events report only other clients’ jobs', () => {
    const own = { ...job, payload: Buffer.from('{"image-id": "debian-1", "reason": true}') };
    assert.equal(new JobEvents().eventOf(own), undefined);
    assert.equal(new JobEvents().eventOf(foreign)?.event, 'build-succeeded');
  });

  it('a job that the builder’s stop interrupts emits no event, as it runs again', async () => {
    const running = new RunningJobs();
    const events = new JobEvents();
    const found: (string | undefined)[] = [];
    running.on('ended', (ended) => found.push(events.eventOf(ended)?.event));
    const [stop, never] = [new AbortController(), new AbortController()];
    const run = (signal: AbortSignal): Promise<void> =>
      running.run(
        { handle: 'H:1', payload: foreign.payload, sendStatus: () => {}, signal },
        { kind: 'build', 'image-id': 'debian-1', diskimage: 'debian' },
        () => Promise.reject(new Error('no space')),
      );
    stop.abort(new Error('the builder is being stopped'));
    await assert.rejects(run(stop.signal));
    await assert.rejects(run(never.signal));
    assert.deepEqual(found, [undefined, 'build-failed']);
  });

  it('a daemon’s events distinguish a recovery from a success', () => {
    const events = new JobEvents();
    const errors = [new Error('full'), new CancelledError('root@a'), undefined, undefined];
    assert.deepEqual(
      errors.map((error) => events.eventOf({ ...foreign, ...(error && { error }) })?.event),
      ['build-failed', 'build-cancelled', 'build-recovered', 'build-succeeded'],
    );
  });
});
