import { createHash } from 'node:crypto';
import type { InstanceProvider } from '@nodepool-builder/image-builder';
import { type FullBuildContext, fileMaterial } from '@nodepool-builder/image-builder/internal';
import type { OnInstance } from './on-instance-settings.ts';
import { scriptFiles } from './step-inputs.ts';

interface BuildInputs {
  readonly settings: Pick<OnInstance, 'steps'>;
  readonly context: Pick<
    FullBuildContext,
    'addMaterial' | 'diskimage' | 'findRepository' | 'wantsMaterials' | 'log' | 'signal'
  >;
  readonly provider: InstanceProvider;
}

/**
 * Reports the base image, the scripts and the steps of a build.
 *
 * @param image base image of the launch; undefined for a build that another release started
 */
export async function addMaterials(inputs: BuildInputs, image: string | undefined): Promise<void> {
  const { settings, context } = inputs;
  const { addMaterial, diskimage, wantsMaterials } = context;
  if (!wantsMaterials) return;
  if (image !== undefined) await addBaseImage(inputs, image);
  for (const { content } of await scriptFiles(diskimage.scriptDir)) {
    if ('file' in content) addMaterial(await fileMaterial(`script ${content.file}`, content.file, context));
  }
  for (const [index, step] of settings.steps.entries()) {
    const sha256 = createHash('sha256').update(step).digest('hex');
    addMaterial({ name: `step ${index + 1}`, digest: { sha256 } });
  }
}

async function addBaseImage({ context, provider }: BuildInputs, image: string): Promise<void> {
  const { addMaterial, log, signal } = context;
  const described = await provider.describeImage?.(image, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    // The name of the image is known, because the launch has found it.
    log(`cannot describe the base image ${image}: ${String(error)}`);
  });
  const annotations = { provider: provider.name, image, ...described?.annotations };
  addMaterial({ name: `base image ${image}`, digest: described?.digest ?? {}, annotations });
}
