import type { ConfigurationSource } from './source.ts';
import { escapePointer, type YamlDocument } from './yaml-document.ts';

/**
 * What becomes text, as Python writes it: `release: 15.0` is `15.0`, though JavaScript has but one kind of number and
 * would write 15.
 */
export function withFloatTexts(document: YamlDocument, source: ConfigurationSource): ConfigurationSource {
  const text = (pointer: string, value: unknown): unknown =>
    Number.isInteger(value) && document.isFloat(pointer) ? `${String(value)}.0` : value;
  return {
    ...source,
    diskimages: (source.diskimages ?? []).map((diskimage, index) => ({
      ...diskimage,
      release: text(`/diskimages/${index}/release`, diskimage.release),
    })),
    providers: (source.providers ?? []).map((provider, index) => ({
      ...provider,
      images: (provider.images ?? []).map((image, position) => ({
        ...image,
        meta: Object.fromEntries(
          Object.entries(image.meta ?? {}).map(([key, value]) => {
            const pointer = `/providers/${index}/images/${position}/meta/${escapePointer(key)}`;
            return [key, text(pointer, value)];
          }),
        ),
      })),
    })),
  };
}
