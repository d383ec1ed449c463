import type { UnrecordedImage } from './orphans/find-orphans.ts';
import { failuresInARow } from './planning/back-off.ts';
import type { RecordStep } from './planning/pass.ts';
import { newestFirst } from './planning/survey.ts';
import type { Build, ManagerState, Upload } from './records.ts';
import type { StateChange } from './store/leadership.ts';

/** A step that runs again after an error that no record contains. */
export type RetriedStep = RecordStep['kind'] | 'compare';

/** An event of the leading manager. Records are in the store before their event. */
export type ManagerEvent =
  /** A build or an upload has a new record; `isRetry` if the last one failed. */
  | { readonly kind: 'started'; readonly record: Build | Upload; readonly isRetry: boolean }
  /** A build or an upload is now `ready` or `failed`. An imported build of Zuul has no other event. */
  | { readonly kind: 'ended'; readonly record: Build | Upload }
  /** A step failed, and runs again after a pause. */
  | { readonly kind: 'retry'; readonly step: RetriedStep }
  /** All orphans that a scan has found. */
  | { readonly kind: 'scanned'; readonly orphans: readonly UnrecordedImage[] }
  /** An orphan was deleted, or its deletion failed. */
  | { readonly kind: 'orphan'; readonly orphan: UnrecordedImage; readonly isDeleted: boolean }
  /** This manager has become the leader, or no longer is. */
  | { readonly kind: 'leadership'; readonly isLeader: boolean };

const RUNNING: ReadonlySet<string> = new Set(['building', 'uploading']);
const ENDED: ReadonlySet<string> = new Set(['ready', 'failed']);

/** Yields the events of a change, which the state does not have yet. */
export function* eventsOf(
  change: Pick<StateChange, 'builds' | 'uploads'>,
  { builds, uploads }: ManagerState,
): Iterable<ManagerEvent> {
  for (const [records, known] of [
    [change.builds ?? [], builds],
    [change.uploads ?? [], uploads],
  ] as const) {
    for (const record of records) {
      const before = known.get(record.id);
      if (before !== undefined && !RUNNING.has(before.state)) continue;
      if (ENDED.has(record.state)) yield { kind: 'ended', record };
      else if (before === undefined && RUNNING.has(record.state)) {
        const others = [...known.values()].filter((one) => isOfSameTarget(one, record));
        const configuration = 'configuration' in record ? record.configuration : undefined;
        const failures = failuresInARow(newestFirst(others), configuration);
        yield { kind: 'started', record, isRetry: failures.length > 0 };
      }
    }
  }
}

function isOfSameTarget(one: Build | Upload, other: Build | Upload): boolean {
  if (!('imageName' in one && 'imageName' in other)) return one.diskimage === other.diskimage;
  return one.provider === other.provider && one.imageName === other.imageName;
}

/** Returns the current step of a record. */
export function stepOf(id: string, { builds, uploads }: ManagerState): RetriedStep {
  const build = builds.get(id);
  if (build !== undefined) return build.state === 'deleting' ? 'delete-build' : 'resume-build';
  const state = uploads.get(id)?.state;
  if (state === undefined) return 'compare';
  if (state === 'failed') return 'discard';
  return state === 'uploading' ? 'resume-upload' : 'delete-upload';
}
