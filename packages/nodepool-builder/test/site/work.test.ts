import { partialDeepStrictEqual } from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FunctionStatus } from '@nodepool-builder/gearman-node';
import type { LocatedJob } from '../../src/site/builder-status.ts';
import { standingOf, type Work, workOf } from '../../src/site/work.ts';

const DOCS = { id: 'docs-1', state: 'building', job: 'image-build:docs' } as const;

function offer(name: string, total: number, running: number, availableWorkers = 1): FunctionStatus {
  return { name, total, running, availableWorkers };
}

/** A job that runs in the builder west1. */
function runningBuild(imageId: string, diskimages: readonly string[] = ['docs']): LocatedJob {
  const job = { kind: 'build', 'image-id': imageId, handle: 'H:1', started: '', percent: 35 } as const;
  return { ...job, host: 'west1', diskimages: [...diskimages] };
}

/** Reports of job servers and builders. */
function work(functions: readonly FunctionStatus[] | undefined, ...jobs: readonly LocatedJob[]): Work {
  return workOf(new Map(jobs.map((job) => [job['image-id'], job])), functions);
}

describe('a build on record as building', () => {
  for (const [sentence, given, expected] of [
    [
      'is building with its builder’s progress',
      work([offer('image-build:docs', 1, 1)], runningBuild('docs-1')),
      { state: 'building', percent: 35, host: 'west1', waiting: null },
    ],
    [
      'is queued while its job waits, and names the build that the builder works on',
      work([offer('image-build:docs', 1, 0)], runningBuild('debian-7')),
      { state: 'queued', percent: null, waiting: 'a free builder; west1 is working on debian-7' },
    ],
    [
      'is queued behind several builds',
      work([offer('image-build:docs', 1, 0)], runningBuild('debian-7'), runningBuild('fedora-3')),
      { state: 'queued', waiting: 'a free builder; 2 builds run' },
    ],
    [
      'is queued, and a build of a builder that does not offer its disk image does not count',
      work([offer('image-build:docs', 1, 0)], runningBuild('debian-7'), runningBuild('fedora-3', ['fedora'])),
      { state: 'queued', waiting: 'a free builder; west1 is working on debian-7' },
    ],
    [
      'is queued if no builder offers its disk image',
      work([offer('image-build:docs', 1, 0, 0)]),
      { state: 'queued', waiting: 'a builder that offers image-build:docs' },
    ],
    [
      'is queued if no job server has its job',
      work([offer('image-build:docs', 0, 0)]),
      { state: 'queued', waiting: 'the manager to submit its job' },
    ],
    [
      'says that it waits for a reply if its job runs at a builder that does not respond',
      work([offer('image-build:docs', 1, 1)]),
      { state: 'building', percent: null, waiting: 'a reply from its builder' },
    ],
    [
      'says that it waits for a reply if no job server responds',
      work(undefined),
      { state: 'building', waiting: 'a reply from a job server' },
    ],
    ['is building if no job server was queried', undefined, { state: 'building', waiting: null }],
  ] as const) {
    it(`a build on record as building ${sentence}`, () =>
      partialDeepStrictEqual(standingOf(DOCS, given), expected));
  }
});

it('a queued upload says that a connected builder, which may be the only one with its image, does not reply', () => {
  const functions = [offer('image-upload:docs-1', 1, 0), offer('image-builder-status:west1', 0, 0)];
  const upload = { id: '2', state: 'uploading', job: 'image-upload:docs-1' } as const;
  const waiting = 'a free builder; a connected builder does not reply';
  partialDeepStrictEqual(standingOf(upload, workOf(new Map(), functions, 0)), { state: 'queued', waiting });
  partialDeepStrictEqual(standingOf(upload, workOf(new Map(), functions, 1)), { waiting: 'a free builder' });
});

it('a build that has ended is never shown as queued', () => {
  const ended = { ...DOCS, state: 'failed' } as const;
  partialDeepStrictEqual(standingOf(ended, work([])), { state: 'failed', waiting: null });
});
