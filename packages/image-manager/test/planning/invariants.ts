import { deepEqual, equal } from 'node:assert/strict';
import { type Build, type ManagerState, type Plan, plan, type Upload } from '@nodepool-builder/image-manager';
import { buildDateOf, type Dated, newestFirst } from '../../src/planning/age.ts';
import type { Simulation } from './simulation.ts';
import { stepInWords } from './situation-table.ts';

/** The image names that each provider is configured to have: `cloud/debian`, with the disk image. */
export function wantedPlaces({ diskimages, providers }: Simulation): ReadonlyMap<string, string> {
  const names = new Set(diskimages.map(({ name }) => name));
  return new Map(
    providers.flatMap((provider) =>
      provider.images
        .filter(({ diskimage }) => names.has(diskimage))
        .map((image) => [`${provider.name}/${image.name}`, image.diskimage] as const),
    ),
  );
}

/** The ready uploads of a place; only the good ones of a disk image, if it is given. */
export function readyAt(
  { builds, uploads }: ManagerState,
  place: string,
  diskimage?: string,
): readonly Upload[] {
  return [...uploads.values()].filter(
    (upload) =>
      upload.state === 'ready' &&
      `${upload.provider}/${upload.imageName}` === place &&
      (diskimage === undefined ||
        (upload.diskimage === diskimage && builds.get(upload.imageId)?.withdrawn !== true)),
  );
}

/** A plan depends on nothing but its arguments, leaves them alone, and holds until the time it tells. */
export function checkPurity(simulation: Simulation, found: Plan): void {
  const { configuration, state, now } = simulation;
  const world = simulation.worldAt(now);
  const before = structuredClone({ configuration, state, world });
  deepEqual(plan(configuration, state, world), found);
  deepEqual({ configuration, state, world }, before);
  const last = found.nextAt === undefined ? now + 1e10 : found.nextAt - 1;
  const { steps } = plan(configuration, state, simulation.worldAt(last));
  deepEqual(steps.map(stepInWords), found.steps.map(stepInWords), 'until nextAt');
}

/** What no plan may take away: the last good upload of a place, the last good build, a file that is being uploaded. */
export function checkNothingGoodGoes(simulation: Simulation, { steps }: Plan): void {
  const { state } = simulation;
  const deleted = new Set<string>();
  for (const step of steps) {
    if (step.act === 'delete-upload') deleted.add(step.uploadId);
    if (step.act === 'delete-build') deleted.add(step.imageId);
  }
  const stays = ({ id }: Build | Upload) => !deleted.has(id);
  for (const [place, diskimage] of wantedPlaces(simulation)) {
    for (const ready of [readyAt(state, place), readyAt(state, place, diskimage)]) {
      equal(ready.length === 0 || ready.some(stays), true, `the last good one of ${place} would go`);
    }
  }
  for (const { name } of simulation.diskimages) {
    const onDisk = [...state.builds.values()].filter(
      (each) => each.diskimage === name && each.state === 'ready',
    );
    for (const ready of [onDisk, onDisk.filter(({ withdrawn }) => !withdrawn)]) {
      equal(ready.length === 0 || ready.some(stays), true, `the last good build of ${name} would go`);
    }
  }
  for (const { id, imageId, state: is } of state.uploads.values()) {
    equal(is === 'uploading' && deleted.has(imageId), false, `${imageId} would go while ${id} is going on`);
  }
}

/** One build of a disk image at a time, and one upload to a place. */
export function checkOneAtATime({ state }: Simulation): void {
  const building = [...state.builds.values()].filter((each) => each.state === 'building');
  deepEqual(building.length, new Set(building.map(({ diskimage }) => diskimage)).size);
  const uploading = [...state.uploads.values()].filter((each) => each.state === 'uploading');
  const places = uploading.map(({ provider, imageName }) => `${provider}/${imageName}`);
  deepEqual(places.length, new Set(places).size);
}

/** Every place has the newest good build and no more than are kept; nothing else is anywhere. */
export function checkEnd(simulation: Simulation): void {
  const { state, diskimages } = simulation;
  const places = wantedPlaces(simulation);
  for (const [place, diskimage] of places) {
    const good = [...state.builds.values()].filter(
      (each) => each.diskimage === diskimage && each.state === 'ready' && !each.withdrawn,
    );
    const [newest] = good.toSorted(newestFirst(good, (build) => build));
    const uploads = readyAt(state, place);
    const asNew = uploads.filter(
      (upload) => newest !== undefined && isAsNew(buildDateOf(upload, state.builds), newest),
    );
    equal(asNew.length > 0, true, `${place} lacks it`);
    const keep = diskimages.find(({ name }) => name === diskimage)?.keep ?? 0;
    equal(uploads.length <= keep, true, `${place} has too many`);
    deepEqual(readyAt(state, place, diskimage), uploads, `${place} has others`);
  }
  for (const { id, provider, imageName, state: is, leftovers } of state.uploads.values()) {
    if (is !== 'ready' || !places.has(`${provider}/${imageName}`))
      equal(`${is} ${leftovers}`, 'failed false', id);
  }
}

function isAsNew(one: Dated, other: Dated): boolean {
  return newestFirst([one, other], (each) => each)(one, other) <= 0;
}
