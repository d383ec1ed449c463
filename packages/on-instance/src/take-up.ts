import type { BuildContext, BuilderServices, Instance, InstanceState } from '@nodepool-builder/image-builder';
import type { InstanceClaim, InstancePhase, InstanceRecord } from './instance-records.ts';
import { discardCaptures, endInstances, instancesOf } from './remains.ts';
import type { OnInstance } from './settings.ts';

/** Required state of the machine for resuming in a phase. In other phases a build cannot be resumed. */
const STATES_TO_GO_ON: Readonly<Partial<Record<InstancePhase, readonly InstanceState[]>>> = {
  running: ['running'],
  cleaned: ['running', 'stopped'],
  stopped: ['stopped'],
  captured: ['stopped'],
};

/** A build that an earlier process started. */
export interface TakenUp {
  readonly entry: InstanceRecord;
  readonly instance: Instance;
}

/**
 * Returns the earlier attempt at the same image if the build can resume it, or removes it.
 *
 * @param recipe configuration digest of this build
 * @throws ImageError `invalid-configuration` if the provider of the attempt is no longer configured
 */
export async function takeUp(
  settings: OnInstance,
  services: BuilderServices,
  context: Pick<BuildContext, 'imageId' | 'signal' | 'log'>,
  claim: InstanceClaim,
  recipe: string,
): Promise<TakenUp | undefined> {
  const entry = await claim.read();
  if (entry === undefined) return undefined;
  const { imageId, signal } = context;
  const provider = services.instanceProvider(entry.provider);
  const [instance] = await instancesOf(provider, imageId, { signal });
  const isSame = entry.recipe === recipe && entry.keptUntil === undefined;
  if (settings.afterRestart === 'resume' && isSame && instance !== undefined) {
    const state = await instance.state({ signal });
    const isAmbiguous = settings.sysprep && entry.phase === 'cleaned' && state === 'running';
    if (STATES_TO_GO_ON[entry.phase]?.includes(state) && !isAmbiguous) return { entry, instance };
  }
  context.log(`what was left of an earlier try at image ${imageId} is removed`);
  await endInstances(provider, imageId, { signal });
  await discardCaptures(provider, imageId, { signal });
  await claim.remove();
  return undefined;
}
