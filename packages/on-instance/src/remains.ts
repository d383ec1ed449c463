import type { Instance, InstanceProvider, OperationOptions } from '@nodepool-builder/image-builder';

/** Lists the instances of a build. */
export async function instancesOf(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<Instance[]> {
  return (await provider.list(options)).filter(({ buildId }) => buildId === imageId);
}

/** Destroys the instances of a build. */
export async function endInstances(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<void> {
  for (const instance of await instancesOf(provider, imageId, options)) await instance.destroy(options);
}

/** Removes complete and partial captures of a build from the provider. */
export async function discardCaptures(
  provider: InstanceProvider,
  imageId: string,
  options: OperationOptions,
): Promise<void> {
  const captures = (await provider.captures?.(options)) ?? [];
  for (const capture of captures) if (capture.imageId === imageId) await capture.discard(options);
}
