import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import type { Build } from '@nodepool-builder/image-manager';
import { obsoleteIn, sumUp } from '../../src/site/shown-state.ts';

const DISKIMAGES = [{ name: 'docs', digest: 'now' }];

/** A ready build of docs. */
function build(id: string, fields: Partial<Build> = {}): Build {
  const times = { requestedAt: 0, endedAt: 1 };
  return {
    id,
    diskimage: 'docs',
    state: 'ready',
    configuration: 'now',
    reason: '',
    withdrawn: false,
    ...times,
    ...fields,
  };
}

interface Row {
  readonly 'image-id': string;
  readonly state:
    | 'building'
    | 'uploading'
    | 'ready'
    | 'missing'
    | 'failed'
    | 'cancelled'
    | 'deleting'
    | 'deleted';
  readonly provider?: string;
  readonly requested: string | null;
  readonly error: string | null;
  readonly waiting: string | null;
  readonly retrying: string | null;
}

/** Returns a row of a build list. */
function row(imageId: string, state: Row['state'], error: string | null = null): Row {
  return { 'image-id': imageId, state, requested: null, error, waiting: null, retrying: null };
}

/** Returns a row of an upload list. */
function uploadRow(...args: Parameters<typeof row>): Row {
  return { ...row(...args), provider: 'east' };
}

const READY = { state: 'ready', error: null, ready: 1 };

for (const [sentence, builds, rows, expected] of [
  [
    'a failed upload of an image that was rolled back does not hide the ready image',
    [build('docs-2', { withdrawn: true }), build('docs-1')],
    [uploadRow('docs-2', 'failed', 'no space'), uploadRow('docs-1', 'ready')],
    { ...READY, newest: 'docs-1' },
  ],
  [
    'a failed upload of the newest image is shown as its provider’s state, with the error',
    [build('docs-2'), build('docs-1')],
    [uploadRow('docs-2', 'failed', 'no space'), uploadRow('docs-1', 'ready')],
    { state: 'failed', error: 'no space', ready: 1, newest: 'docs-1' },
  ],
  [
    'an upload that failed before the last ready image has no error',
    [build('docs-2'), build('docs-1')],
    [uploadRow('docs-2', 'ready'), uploadRow('docs-1', 'failed', 'no space')],
    { ...READY, newest: 'docs-2' },
  ],
  [
    'a failure before a deleted image is not shown again',
    [build('docs-2', { state: 'deleted', withdrawn: true }), build('docs-1', { state: 'failed' })],
    [row('docs-2', 'deleted')],
    { state: 'missing', error: null, ready: 0 },
  ],
  [
    'a provider whose only image was rolled back is ready, and shows the rollback',
    [build('docs-2', { withdrawn: true }), build('docs-1')],
    [uploadRow('docs-2', 'ready')],
    {
      state: 'ready',
      error: 'docs-2 was rolled back, but there is no older image',
      ready: 1,
      newest: 'docs-2',
    },
  ],
  [
    'a failed build of a configuration that was reverted does not hide the ready image',
    [build('docs-2', { state: 'failed', configuration: 'mistyped' }), build('docs-1')],
    [row('docs-2', 'failed', 'no such element'), row('docs-1', 'ready')],
    { ...READY, newest: 'docs-1' },
  ],
  [
    'an image that the provider no longer lists is missing, with the reason',
    [build('docs-1')],
    [uploadRow('docs-1', 'missing', 'the provider no longer lists it')],
    { state: 'missing', error: 'the provider no longer lists it', ready: 0 },
  ],
] as const satisfies readonly (readonly [string, readonly Build[], readonly Row[], object])[]) {
  test(sentence, () => {
    const state = { builds: new Map(builds.map((each: Build) => [each.id, each])) };
    const { newest, waiting: _, retrying: __, ...more } = sumUp<Row>(rows, obsoleteIn(DISKIMAGES, state));
    deepEqual({ ...more, ...(newest && { newest: newest['image-id'] }) }, expected);
  });
}
