import { createHash } from 'node:crypto';
import type { InstanceProvider, Material } from '@nodepool-builder/image-builder';
import { type FullBuildContext, fileMaterial } from '@nodepool-builder/image-builder/internal';
import type { OnInstance } from './on-instance-settings.ts';
import { scriptFiles } from './step-inputs.ts';

/**
 * Reports the base image, the scripts and the steps of a build.
 *
 * @param image base image of the launch; undefined for a build that another release started
 */
export async function addMaterials(
  { steps }: OnInstance,
  context: FullBuildContext,
  provider: InstanceProvider,
  image: string | undefined,
): Promise<void> {
  const { addMaterial, diskimage, wantsMaterials } = context;
  if (!wantsMaterials) return;
  if (image !== undefined) addMaterial(await baseImageMaterial(context, provider, image));
  for (const { content } of await scriptFiles(diskimage.scriptDir)) {
    if ('file' in content) addMaterial(await fileMaterial(`script ${content.file}`, content.file, context));
  }
  for (const [index, step] of steps.entries()) {
    const sha256 = createHash('sha256').update(step).digest('hex');
    addMaterial({ name: `step ${index + 1}`, digest: { sha256 } });
  }
}

async function baseImageMaterial(
  { log, signal }: FullBuildContext,
  provider: InstanceProvider,
  image: string,
): Promise<Material> {
  const described = await provider.describeImage?.(image, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    // The name of the image is known, because the launch has found it.
    log(`cannot describe the base image ${image}: ${String(error)}`);
  });
  const annotations = { provider: provider.name, image, ...described?.annotations };
  return { name: `base image ${image}`, digest: described?.digest ?? {}, annotations };
}
