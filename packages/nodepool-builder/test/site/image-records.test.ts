import { deepEqual, equal, partialDeepStrictEqual } from 'node:assert/strict';
import { test } from 'node:test';
import type { Build, ManagerState, Plan } from '@nodepool-builder/image-manager';
import { buildRecord, planRecords } from '../../src/site/format-records.ts';
import { imageRecords } from '../../src/site/image-records.ts';
import { workOf } from '../../src/site/work.ts';

function build(id: string, state: Build['state']): Build {
  const times = { requestedAt: 0, ...(state === 'ready' && { endedAt: 1 }) };
  return { id, diskimage: 'docs', state, reason: 'due', configuration: 'a', withdrawn: false, ...times };
}

const PROVIDERS = [
  { name: 'cloud', entry: { pause: false, images: [{ name: 'docs', diskimage: 'docs', pause: false }] } },
];

/** Summarizes a site with one disk image and one provider. */
function sumUpSite(builds: readonly Build[], functions: Parameters<typeof workOf>[1]) {
  const state: ManagerState = {
    builds: new Map(builds.map((one) => [one.id, one])),
    uploads: new Map(),
    pauses: new Map(),
  };
  const configuration = { diskimages: [{ name: 'docs', digest: 'a', pause: false }], providers: PROVIDERS };
  const records = builds.map((one) => buildRecord(one, workOf(new Map(), functions)));
  const site = { configuration, state, builds: records, uploads: [] } as unknown as Parameters<
    typeof imageRecords
  >[0];
  return { state, records, configuration: site.configuration, image: imageRecords(site)[0] };
}

test('a ready build that no builder offers says so, as does the provider that lacks it', () => {
  const { records, image } = sumUpSite([build('docs-1', 'ready')], []);
  const error = 'no builder offers it now; start the one that has its files';
  partialDeepStrictEqual(records, [{ state: 'ready', error }]);
  partialDeepStrictEqual(image, { state: 'ready', error, providers: [{ state: 'missing', error }] });
});

test('a ready build has no error if a builder offers it, or if no job server replies', () => {
  const offer = { name: 'image-upload:docs-1', total: 0, running: 0, availableWorkers: 4 };
  for (const functions of [[offer], undefined]) {
    const { image } = sumUpSite([build('docs-1', 'ready')], functions);
    partialDeepStrictEqual(image, { state: 'ready', error: null, providers: [{ error: null }] });
  }
});

test('the plan lists the builds that wait, with what they wait for', () => {
  const waiting = { name: 'image-build:docs', total: 1, running: 0, availableWorkers: 1 };
  const { state, records, configuration } = sumUpSite([build('docs-1', 'building')], [waiting]);
  const plan: Plan = { steps: [], waits: [], laterBuilds: [] };
  deepEqual(planRecords(plan, configuration, state, records), [
    {
      what: 'wait',
      subject: 'build docs-1',
      diskimage: 'docs',
      when: null,
      reason: 'it waits for a free builder',
    },
  ]);
  equal(planRecords(plan, configuration, state, []).length, 0);
});
