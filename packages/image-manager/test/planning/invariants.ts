import { deepEqual, equal } from 'node:assert/strict';
import { type Build, type ManagerState, type Plan, plan, type Upload } from '@nodepool-builder/image-manager';
import { newestFirst } from '../../src/planning/survey.ts';
import type { Simulation } from './simulation.ts';
import { stepInWords } from './situation-table.ts';

/** Returns the disk image of each configured target, such as `cloud/debian`. */
export function configuredTargets({ diskimages, providers }: Simulation): ReadonlyMap<string, string> {
  const names = new Set(diskimages.map(({ name }) => name));
  return new Map(
    providers.flatMap((provider) =>
      provider.images
        .filter(({ diskimage }) => names.has(diskimage))
        .map((image) => [`${provider.name}/${image.name}`, image.diskimage] as const),
    ),
  );
}

/** Returns the ready uploads of a target; for a given disk image, only its good ones. */
export function readyAt(
  { builds, uploads }: ManagerState,
  target: string,
  diskimage?: string,
): readonly Upload[] {
  return [...uploads.values()].filter(
    (upload) =>
      upload.state === 'ready' &&
      `${upload.provider}/${upload.imageName}` === target &&
      (diskimage === undefined ||
        (upload.diskimage === diskimage && builds.get(upload.imageId)?.withdrawn !== true)),
  );
}

/** A plan depends only on its arguments, does not change them, and stays the same until `nextAt`. */
export function checkPurity(simulation: Simulation, found: Plan): void {
  const { configuration, state, now } = simulation;
  const observation = simulation.observationAt(now);
  const before = structuredClone({ configuration, state, observation });
  deepEqual(plan(configuration, state, observation), found);
  deepEqual({ configuration, state, observation }, before);
  const last = found.nextAt === undefined ? now + 1e10 : found.nextAt - 1;
  const { steps } = plan(configuration, state, simulation.observationAt(last));
  deepEqual(steps.map(stepInWords), found.steps.map(stepInWords), 'until nextAt');
}

/** No plan deletes a target's last good upload, the last good build, or a file that is being uploaded. */
export function checkGoodOnesStay(simulation: Simulation, { steps }: Plan): void {
  const { state } = simulation;
  const deleted = new Set<string>();
  for (const step of steps) {
    if (step.kind === 'delete-upload') deleted.add(step.id);
    if (step.kind === 'delete-build') deleted.add(step.id);
  }
  const stays = ({ id }: Build | Upload) => !deleted.has(id);
  for (const [target, diskimage] of configuredTargets(simulation)) {
    for (const ready of [readyAt(state, target), readyAt(state, target, diskimage)]) {
      equal(
        ready.length === 0 || ready.some(stays),
        true,
        `the last good upload of ${target} would be deleted`,
      );
    }
  }
  for (const { name } of simulation.diskimages) {
    const onDisk = [...state.builds.values()].filter(
      (each) => each.diskimage === name && each.state === 'ready',
    );
    for (const ready of [onDisk, onDisk.filter(({ withdrawn }) => !withdrawn)]) {
      equal(ready.length === 0 || ready.some(stays), true, `the last good build of ${name} would be deleted`);
    }
  }
  for (const { id, imageId, state: is } of state.uploads.values()) {
    equal(
      is === 'uploading' && deleted.has(imageId),
      false,
      `${imageId} would be deleted while upload ${id} runs`,
    );
  }
}

/** At most one build of a disk image and one upload to a target run at a time. */
export function checkOneAtATime({ state }: Simulation): void {
  const building = [...state.builds.values()].filter((each) => each.state === 'building');
  deepEqual(building.length, new Set(building.map(({ diskimage }) => diskimage)).size);
  const uploading = [...state.uploads.values()].filter((each) => each.state === 'uploading');
  const targets = uploading.map(({ provider, imageName }) => `${provider}/${imageName}`);
  deepEqual(targets.length, new Set(targets).size);
}

/** In the end, every target has the newest good build and at most `keep` uploads, and no other uploads exist. */
export function checkEnd(simulation: Simulation): void {
  const { state, diskimages } = simulation;
  const targets = configuredTargets(simulation);
  for (const [target, diskimage] of targets) {
    const good = [...state.builds.values()].filter(
      (each) => each.diskimage === diskimage && each.state === 'ready' && !each.withdrawn,
    );
    const [newest] = newestFirst(good);
    const uploads = readyAt(state, target);
    const asNew = uploads.filter(({ imageId }) => {
      const build = state.builds.get(imageId);
      return newest !== undefined && build !== undefined && newestFirst([build, newest])[0] === build;
    });
    equal(asNew.length > 0, true, `${target} lacks the newest build`);
    const keep = diskimages.find(({ name }) => name === diskimage)?.keep ?? 0;
    equal(uploads.length <= keep, true, `${target} has too many uploads`);
    deepEqual(readyAt(state, target, diskimage), uploads, `${target} has uploads of other disk images`);
  }
  for (const { id, provider, imageName, state: is, leftovers } of state.uploads.values()) {
    if (is !== 'ready' || !targets.has(`${provider}/${imageName}`))
      equal(`${is} ${leftovers}`, 'failed false', id);
  }
}
