import { createHash } from 'node:crypto';
import type { BuildContext } from '../context.ts';
import type { Instance, InstanceState } from '../instance/instance-provider.ts';
import type { BuilderServices } from '../registry.ts';
import type { InstanceClaim, InstanceEntry, InstancePhase } from './ledger.ts';
import { discardCaptures, endInstances, instancesOf } from './remains.ts';
import type { OnInstance } from './settings.ts';

/** How the machine has to be for a build to go on in a phase. In others it cannot. */
const STATES_TO_GO_ON: Readonly<Partial<Record<InstancePhase, readonly InstanceState[]>>> = {
  running: ['running'],
  cleaned: ['running', 'stopped'],
  stopped: ['stopped'],
  captured: ['stopped'],
};

/** A build that a process before this one began. */
export interface TakenUp {
  readonly entry: InstanceEntry;
  readonly instance: Instance;
}

/** What two builds have to have in common so that one can go on where the other ended. */
export function recipeOf(settings: OnInstance, { diskimage }: Pick<BuildContext, 'diskimage'>): string {
  const { scriptDir, envVars } = diskimage;
  return createHash('sha256')
    .update(JSON.stringify([settings, scriptDir, envVars]))
    .digest('hex');
}

/**
 * What was left of an earlier try at the same image, if the build can go on with it. Else it is removed.
 *
 * @throws ImageError `invalid-configuration` if the provider is not there any more that it was made in
 */
export async function takeUp(
  settings: OnInstance,
  services: BuilderServices,
  context: Pick<BuildContext, 'imageId' | 'diskimage' | 'signal' | 'log'>,
  claim: InstanceClaim,
): Promise<TakenUp | undefined> {
  const entry = await claim.read();
  if (entry === undefined) return undefined;
  const { signal } = context;
  const provider = services.instanceProvider(entry.provider);
  const [instance] = await instancesOf(provider, entry.imageId, { signal });
  const isSame = entry.recipe === recipeOf(settings, context) && entry.keptUntil === undefined;
  if (settings.afterRestart === 'resume' && isSame && instance !== undefined) {
    const state = await instance.state({ signal });
    const isAmbiguous = settings.sysprep && entry.phase === 'cleaned' && state === 'running';
    if (STATES_TO_GO_ON[entry.phase]?.includes(state) && !isAmbiguous) return { entry, instance };
  }
  context.log(`what was left of an earlier try at image ${entry.imageId} is removed`);
  await endInstances(provider, entry.imageId, { signal });
  await discardCaptures(provider, entry.imageId, { signal });
  await claim.remove();
  return undefined;
}
