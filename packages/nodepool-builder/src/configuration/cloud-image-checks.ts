import type { Diagnostic } from '@nodepool-builder/image-builder';
import { below, nameDiagnostics, namesOf } from './checks.ts';
import { cloudImagesOf, contradiction, toCloudImage } from './cloud-images.ts';
import type { CloudImageConfiguration } from './configuration.ts';
import type { ConfigurationParts } from './parts.ts';

/**
 * Reports cloud images that cannot be resolved. It is only a warning if nodepool's driver may support the entry,
 * because launchers also read the file.
 */
export function* cloudImageDiagnostics({
  source,
  providers,
  lineOf,
}: ConfigurationParts): Iterable<Diagnostic> {
  const shared = source['cloud-images'] ?? [];
  yield* nameDiagnostics(namesOf('/cloud-images', shared), lineOf);
  for (const [index, image] of shared.entries()) {
    yield* below(`/cloud-images/${index}`, imageDiagnostics(toCloudImage(image, {}), 'error'));
  }
  for (const provider of providers) {
    const { pointer, module } = provider;
    const list = provider.source['cloud-images'] ?? [];
    yield* nameDiagnostics(namesOf(`${pointer}/cloud-images`, list), lineOf);
    if (module.images === undefined) {
      if (list.length === 0) continue;
      const reason = `has no effect: a provider of type ${module.type} has no images to choose from`;
      yield { pointer: `${pointer}/cloud-images`, severity: 'warning', reason, remedy: 'remove it' };
      continue;
    }
    const configured = new Map(cloudImagesOf(provider, shared).map((image) => [image.name, image]));
    for (const [index, image] of list.entries()) {
      const { name } = image;
      // No driver of nodepool supports both, so no launcher needs the entry.
      const isError = module.images.cloudImages === undefined || contradiction(image, module) !== undefined;
      const severity = isError ? 'error' : 'warning';
      yield* below(
        `${pointer}/cloud-images/${index}`,
        imageDiagnostics(configured.get(name) ?? { name, filters: [] }, severity),
      );
    }
  }
}

function* imageDiagnostics(
  { name, reason }: CloudImageConfiguration,
  severity: 'error' | 'warning',
): Iterable<Diagnostic> {
  if (reason === undefined) return;
  yield { pointer: '', severity, reason: `"${name}" chooses no image: ${reason}`, remedy: 'correct it' };
}
