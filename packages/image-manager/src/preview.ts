import type { ImageProvider } from '@nodepool-builder/image-builder';
import { BuilderFleet } from './gearman/builder-fleet.ts';
import type { ImageManagerOptions } from './image-manager.ts';
import {
  listProvider,
  type UnrecordedImage,
  unrecordedAtBuilders,
  unrecordedInProvider,
} from './orphans/find-orphans.ts';
import { buildsToAdopt, correctFutureDates } from './planning/corrections.ts';
import type { Observation, Plan } from './planning/pass.ts';
import { plan } from './planning/plan.ts';
import type { StateStore } from './store/state-store.ts';

/** Settings of the previews, which change nothing and work without a running manager. */
export interface PreviewOptions extends Pick<ImageManagerOptions, 'configuration' | 'servers' | 'logger'> {
  readonly store: Pick<StateStore, 'owner' | 'read' | 'requests'>;
}

/** Plans a manager's next steps. Running builds and uploads are left out. */
export async function previewPlan({ configuration, store, servers, logger }: PreviewOptions): Promise<Plan> {
  const fleet = new BuilderFleet(servers, logger);
  try {
    const [state, requests, { offered, isComplete }] = await Promise.all([
      store.read(),
      store.requests(),
      fleet.status(),
    ]);
    const inProgress = [
      ...[...state.builds.values()].filter((build) => build.state === 'building'),
      ...[...state.uploads.values()].filter((upload) => upload.state === 'uploading'),
    ];
    const now = Date.now();
    const adopted = buildsToAdopt(configuration, state.builds, offered.uploads, now);
    const corrected = correctFutureDates(state, now);
    const builds = new Map([...state.builds, ...byId(corrected.builds), ...byId(adopted)]);
    const uploads = new Map([...state.uploads, ...byId(corrected.uploads)]);
    const requested = requests.flatMap(({ request }) =>
      request.kind === 'build' ? [request.diskimage] : [],
    );
    const observation: Observation = {
      now,
      offered,
      isComplete,
      inProgress: new Set(inProgress.map(({ id }) => id)),
      absentSince: new Map(),
      retryAt: new Map(),
      requested: new Set(requested),
    };
    return plan(configuration, { builds, uploads, pauses: state.pauses }, observation);
  } finally {
    await fleet.close();
  }
}

function byId<T extends { readonly id: string }>(records: readonly T[]): [string, T][] {
  return records.map((record) => [record.id, record]);
}

/** Lists images without a record, in providers and at builders: orphans, and images of others. */
export async function listUnrecordedImages(
  { configuration, store, servers, logger }: PreviewOptions,
  provider: (name: string) => ImageProvider | undefined,
  signal: AbortSignal,
): Promise<readonly UnrecordedImage[]> {
  const fleet = new BuilderFleet(servers, logger);
  try {
    const [listings, { offered }] = await Promise.all([
      Promise.all(
        configuration.providers.map(({ name }) => listProvider(name, { provider, logger }, signal)),
      ),
      fleet.status(),
    ]);
    // The state is read last, so that it includes images made during the listing.
    const state = await store.read();
    const records = { ...state, owner: store.owner };
    return [
      ...listings.flatMap((listing) => (listing === undefined ? [] : unrecordedInProvider(listing, records))),
      ...unrecordedAtBuilders(offered.deletes, records),
    ];
  } finally {
    await fleet.close();
  }
}
