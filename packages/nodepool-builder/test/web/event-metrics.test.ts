import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Build, Upload } from '@nodepool-builder/image-manager';
import { EventMetrics } from '../../src/web/event-metrics.ts';

/** Returns the series, without the prefix. */
async function seriesOf(metrics: EventMetrics): Promise<readonly string[]> {
  const lines = (await metrics.registry.metrics()).split('\n');
  return lines.flatMap((line) => /^nodepool_builder_(.*)/.exec(line)?.[1] ?? []);
}

function named(...names: readonly string[]) {
  return names.map((name) => ({ name }));
}

const BUILD: Build = {
  id: 'debian-1',
  diskimage: 'debian',
  state: 'building',
  configuration: '',
  reason: '',
  requestedAt: 0,
  withdrawn: false,
};

const UPLOAD: Upload = {
  id: '1',
  imageId: 'debian-1',
  diskimage: 'debian',
  provider: 'east',
  imageName: 'debian',
  state: 'uploading',
  reason: '',
  requestedAt: 0,
  leftovers: false,
  seen: false,
};

const IMAGE = {
  imageId: 'debian-1',
  imageName: 'debian',
  externalId: 'x',
  format: 'qcow2',
  size: 1,
  uploadedAt: new Date(0),
} as const;

const ALL = { diskimages: named('debian', 'fedora'), providers: named('east', 'west') };

test('result metrics begin with 0 at the start, so that Prometheus sees the first failure', async () => {
  const metrics = new EventMetrics(ALL, { runsManager: false });
  metrics.onJobEvent({ kind: 'build-started', diskimage: 'debian' });
  metrics.onManagerEvent({ kind: 'started', record: UPLOAD, isRetry: false });
  assert.deepEqual(await seriesOf(metrics), [
    'build_jobs_total{diskimage="debian",result="success"} 0',
    'build_jobs_total{diskimage="debian",result="failure"} 0',
    'build_jobs_total{diskimage="debian",result="cancelled"} 0',
    'upload_results_total{diskimage="debian",provider="east",result="success"} 0',
    'upload_results_total{diskimage="debian",provider="east",result="failure"} 0',
    'upload_results_total{diskimage="debian",provider="east",result="cancelled"} 0',
    'upload_retries_total{diskimage="debian",provider="east"} 0',
  ]);
});

test('failures, retries and cancellations are counted by disk image and provider', async () => {
  const metrics = new EventMetrics(ALL, { runsManager: true });
  metrics.onManagerEvent({ kind: 'leadership', isLeader: true });
  metrics.onManagerEvent({ kind: 'started', record: BUILD, isRetry: true });
  metrics.onManagerEvent({ kind: 'ended', record: { ...BUILD, state: 'failed' } });
  metrics.onManagerEvent({ kind: 'ended', record: { ...BUILD, state: 'failed', cancelledBy: 'me' } });
  metrics.onManagerEvent({ kind: 'ended', record: { ...UPLOAD, state: 'ready' } });
  metrics.onManagerEvent({ kind: 'retry', step: 'delete-upload' });
  const series = (await seriesOf(metrics)).filter((one) => !one.endsWith(' 0'));
  assert.deepEqual(series, [
    'build_results_total{diskimage="debian",result="failure"} 1',
    'build_results_total{diskimage="debian",result="cancelled"} 1',
    'upload_results_total{diskimage="debian",provider="east",result="success"} 1',
    'build_retries_total{diskimage="debian"} 1',
    'step_retries_total{step="delete-upload"} 1',
    'manager_leader 1',
  ]);
});

test('the orphan metrics show the leader’s last scan, and deletions are counted', async () => {
  const metrics = new EventMetrics(ALL, { runsManager: true });
  const cloud = { location: 'provider', provider: 'east', image: IMAGE, isOurs: true } as const;
  const files = { location: 'builder', imageId: 'debian-2', isOurs: true } as const;
  metrics.onManagerEvent({ kind: 'scanned', orphans: [cloud, cloud, files] });
  metrics.onManagerEvent({ kind: 'orphan', orphan: cloud, isDeleted: true });
  metrics.onManagerEvent({ kind: 'orphan', orphan: files, isDeleted: false });
  metrics.onJobEvent({ kind: 'orphan-ended', orphan: 'instance', provider: 'east', isDeleted: true });
  const deletions = [
    'orphan_deletions_total{kind="image",provider="east",result="success"} 1',
    'orphan_deletions_total{kind="files",provider="",result="failure"} 1',
    'orphan_deletions_total{kind="instance",provider="east",result="success"} 1',
  ];
  assert.deepEqual(await seriesOf(metrics), [
    ...deletions,
    'orphans{kind="image",provider="east"} 2',
    'orphans{kind="files",provider=""} 1',
    'manager_leader 0',
  ]);
  metrics.onManagerEvent({ kind: 'leadership', isLeader: false });
  assert.deepEqual(await seriesOf(metrics), [...deletions, 'manager_leader 0']);
});

test('jobs that do not succeed are counted, but have no duration metric', async () => {
  const metrics = new EventMetrics(ALL, { runsManager: false });
  const upload = { diskimage: 'debian', provider: 'east', imageName: 'debian', seconds: 90, size: 7 };
  for (const result of ['success', 'failure', 'interrupted'] as const) {
    metrics.onJobEvent({ kind: 'build-ended', diskimage: 'debian', result, seconds: 3000 });
    metrics.onJobEvent({ kind: 'upload-ended', ...upload, result });
  }
  metrics.onJobEvent({ kind: 'sent', provider: 'east', bytes: 5 });
  metrics.onJobEvent({ kind: 'converted', format: 'qcow2', seconds: 61 });
  metrics.onJobEvent({ kind: 'requested', provider: 'east', request: 'ImageCreate', seconds: 0.2 });
  const series = await seriesOf(metrics);
  for (const expected of [
    'build_jobs_total{diskimage="debian",result="interrupted"} 1',
    'upload_jobs_total{diskimage="debian",provider="east",result="interrupted"} 1',
    'build_duration_seconds_bucket{le="1800",diskimage="debian"} 0',
    'build_duration_seconds_bucket{le="3600",diskimage="debian"} 1',
    'build_duration_seconds_sum{diskimage="debian"} 3000',
    'upload_duration_seconds_bucket{le="120",provider="east"} 1',
    'upload_duration_seconds_count{provider="east"} 1',
    'upload_bytes_total{provider="east"} 5',
    'last_upload_size_bytes{diskimage="debian",provider="east"} 7',
    'conversion_duration_seconds_bucket{le="120",format="qcow2"} 1',
    'provider_request_duration_seconds_bucket{le="0.1",provider="east",request="ImageCreate"} 0',
    'provider_request_duration_seconds_count{provider="east",request="ImageCreate"} 1',
  ]) {
    assert.ok(series.includes(expected), `${expected} in ${series.join('\n')}`);
  }
});

test('metrics of removed disk images and providers disappear, and others stay', async () => {
  const metrics = new EventMetrics(ALL, { runsManager: true });
  for (const diskimage of ['debian', 'fedora']) {
    metrics.onJobEvent({ kind: 'build-ended', diskimage, result: 'success', seconds: 60 });
    for (const provider of ['east', 'west']) {
      const upload = { diskimage, provider, imageName: diskimage, seconds: 60, size: 7 };
      metrics.onJobEvent({ kind: 'upload-ended', ...upload, result: 'success' });
    }
  }
  const files = { location: 'builder', imageId: 'debian-2', isOurs: true } as const;
  metrics.onManagerEvent({ kind: 'scanned', orphans: [files] });
  const before = await seriesOf(metrics);
  await metrics.configure(ALL);
  assert.deepEqual(await seriesOf(metrics), before);
  await metrics.configure({ diskimages: named('debian'), providers: named('east') });
  assert.deepEqual(
    await seriesOf(metrics),
    before.filter((one) => !/"fedora"|"west"/.test(one)),
  );
  const after = await seriesOf(metrics);
  metrics.onJobEvent({ kind: 'build-ended', diskimage: 'fedora', result: 'success', seconds: 60 });
  metrics.onJobEvent({ kind: 'sent', provider: 'west', bytes: 5 });
  metrics.onManagerEvent({ kind: 'started', record: { ...BUILD, diskimage: 'fedora' }, isRetry: true });
  const image = { ...IMAGE, externalId: 'y' };
  const cloud = { location: 'provider', provider: 'west', image, isOurs: true } as const;
  metrics.onManagerEvent({ kind: 'orphan', orphan: cloud, isDeleted: true });
  metrics.onManagerEvent({ kind: 'scanned', orphans: [cloud, files] });
  assert.deepEqual(await seriesOf(metrics), after);
});
