import { ImageError, parseImageFilter } from '@nodepool-builder/image-builder';
import type { FilterEntry } from '@nodepool-builder/image-builder/module-kit';
import type { Fault } from './fault.ts';
import { toFault } from './finding.ts';
import { toText } from './scalar.ts';
import type { SchemaNode } from './schema-node.ts';
import type { ConfigurationSource, ImageFilterSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

/** `image-filters` of an image of a provider. */
export const IMAGE_FILTERS_SCHEMA: SchemaNode = {
  type: ['array', 'null'],
  items: {
    type: 'object',
    required: ['name', 'values'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, description: 'Key of the filter, as in `--filter`.' },
      values: {
        type: 'array',
        items: { type: ['string', 'number', 'boolean'] },
        description: 'Values. One match suffices.',
      },
    },
  },
  description: 'Filters for `nodepool-builder latest --image`. An image must match all of them.',
};

/** The entries as a filter is made of, which is when it is used: an age counts from then. */
export function toFilterEntries(source: readonly ImageFilterSource[]): readonly FilterEntry[] {
  return source.map(({ name, values }) => ({ name, values: values.map((value) => toText(value)) }));
}

/** Filters that nothing can be meant by. */
export function imageFilterFaults(document: YamlDocument, source: ConfigurationSource): readonly Fault[] {
  return (source.providers ?? []).flatMap(({ images }, provider) =>
    (images ?? []).flatMap(({ 'image-filters': filters }, image) => {
      const reason = filterFault(toFilterEntries(filters ?? []));
      if (reason === undefined) return [];
      const pointer = `/providers/${provider}/images/${image}/image-filters`;
      return [toFault(document, { pointer, reason: `makes no sense: ${reason}`, remedy: 'correct it' })];
    }),
  );
}

function filterFault(entries: readonly FilterEntry[]): string | undefined {
  try {
    parseImageFilter(entries);
    return undefined;
  } catch (error) {
    if (error instanceof ImageError) return error.message;
    throw error;
  }
}
