import type { Build, Upload } from '@nodepool-builder/image-manager';

/** Returns the state for people. Only for the manager, a cancelled build or upload counts as failed. */
export function shownState<S extends string>({
  state,
  cancelledBy,
}: {
  readonly state: S;
  readonly cancelledBy?: string | undefined;
}): S | 'cancelled' {
  return state === 'failed' && cancelledBy !== undefined ? 'cancelled' : state;
}

/** Returns the reason of a build's or an upload's current state; null if the state is sufficient. */
export function shownError({ state, error }: Pick<Build | Upload, 'state' | 'error'>): string | null {
  return error ?? (state === 'missing' ? 'the provider no longer lists it' : null);
}

/**
 * Makes a test for records that no longer count: of a build that was rolled back, or of a failed build with another
 * configuration, which may have caused the failure.
 */
export function obsoleteIn(
  diskimages: readonly { readonly name: string; readonly digest: string }[],
  { builds }: { readonly builds: ReadonlyMap<string, Build> },
): (imageId: string) => boolean {
  const digests = new Map(diskimages.map(({ name, digest }) => [name, digest]));
  return (imageId) => {
    const build = builds.get(imageId);
    if (build === undefined) return false;
    return (
      build.withdrawn || (build.state === 'failed' && build.configuration !== digests.get(build.diskimage))
    );
  };
}

/** A build or an upload as a list shows it. */
interface ShownWork {
  readonly 'image-id': string;
  readonly state: string;
  readonly requested: string | null;
  readonly error: string | null;
  readonly waiting: string | null;
  readonly retrying: string | null;
}

/** States of a build or an upload that hide the ready images before it. */
const DECISIVE = ['queued', 'building', 'uploading', 'failed', 'cancelled'] as const;

type Decisive<R extends ShownWork> = Extract<R['state'], (typeof DECISIVE)[number]>;

function isReady({ state }: ShownWork): boolean {
  return state === 'ready';
}

/**
 * Summarises the builds of a disk image, or its uploads to one image of a provider.
 *
 * @param records newest first
 * @param isObsolete returns whether an image-id no longer counts
 */
export function sumUp<R extends ShownWork>(records: readonly R[], isObsolete: (imageId: string) => boolean) {
  const wanted = records.filter((record) => !isObsolete(record['image-id']));
  const good = wanted.filter(isReady);
  // A provider keeps an image that was rolled back until it has another one.
  const kept = good.length > 0 ? [] : records.filter((record) => isReady(record) && 'provider' in record);
  const [newest, ...older] = [...good, ...kept];
  const [last] = wanted;
  const decisive = DECISIVE.find((state) => state === last?.state) as Decisive<R> | undefined;
  const rolledBack = kept[0] && `${kept[0]['image-id']} was rolled back, but there is no older image`;
  return {
    state: decisive ?? (newest === undefined ? ('missing' as const) : ('ready' as const)),
    /** Reason of the state; null if the state is sufficient. */
    error:
      (decisive === undefined && newest !== undefined ? (rolledBack ?? newest.error) : last?.error) ?? null,
    waiting: (decisive && last?.waiting) ?? null,
    retrying: (decisive && last?.retrying) ?? null,
    newest,
    /** Number of ready images. */
    ready: newest === undefined ? 0 : 1 + older.length,
  };
}
