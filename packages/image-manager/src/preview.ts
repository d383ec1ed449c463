import type { Logger, ServerAddress } from '@nodepool-builder/gearman-node';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import type { ManagerConfiguration } from './configuration.ts';
import { BuilderFleet } from './gearman/builder-fleet.ts';
import { findStrayImages, type StrayImage } from './leaks/find-leaks.ts';
import { listProviders } from './leaks/list-providers.ts';
import { buildsToAdopt } from './planning/adoption.ts';
import { correctFutureDates } from './planning/future-dates.ts';
import { plan } from './planning/plan.ts';
import type { Plan, World } from './planning/step.ts';
import type { StateStore } from './store/state-store.ts';

/** What a look at a manager's affairs needs: it changes nothing, and needs no manager that runs. */
export interface PreviewOptions {
  readonly configuration: ManagerConfiguration;
  readonly store: Pick<StateStore, 'owner' | 'read' | 'requests'>;
  readonly servers: readonly ServerAddress[];
  readonly logger: Logger;
}

/** What a manager would do next, and what it waits for. What is being built or uploaded is left out. */
export async function previewPlan({ configuration, store, servers, logger }: PreviewOptions): Promise<Plan> {
  const fleet = new BuilderFleet({ servers, logger });
  try {
    const [state, requests, { offered }] = await Promise.all([
      store.read(),
      store.requests(),
      fleet.observe(),
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
    const demanded = requests.flatMap(({ request }) => (request.kind === 'build' ? [request.diskimage] : []));
    const world: World = {
      now,
      offered,
      underWay: new Set(inProgress.map(({ id }) => id)),
      absentSince: new Map(),
      retryAt: new Map(),
      demanded: new Set(demanded),
    };
    return plan(configuration, { builds, uploads }, world);
  } finally {
    await fleet.close();
  }
}

function byId<T extends { readonly id: string }>(records: readonly T[]): [string, T][] {
  return records.map((record) => [record.id, record]);
}

/** Images in providers and at builders that no record stands for, ours and others'. */
export async function listStrayImages(
  { configuration, store, servers, logger }: PreviewOptions,
  provider: (name: string) => ImageProvider | undefined,
  signal: AbortSignal,
): Promise<readonly StrayImage[]> {
  const fleet = new BuilderFleet({ servers, logger });
  try {
    const [listings, { offered }] = await Promise.all([
      listProviders({ providers: configuration.providers, provider, logger }, signal),
      fleet.observe(),
    ]);
    // Last, so that what was made in the meantime is known.
    const state = await store.read();
    return findStrayImages({ owner: store.owner, state, listings, offered: offered.deletes });
  } finally {
    await fleet.close();
  }
}
