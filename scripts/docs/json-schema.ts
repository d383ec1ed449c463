import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';

/** The JSON Schema of the configuration for editors, self-contained and with a description of every key. */
export function jsonSchema(schema: SettingsSchema): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'nodepool.yaml, as nodepool-builder reads it',
    ...explained(schema),
  };
}

function explained(node: SettingsSchema): SettingsSchema {
  const { properties, items, additionalProperties, allOf, else: otherwise } = node;
  return {
    ...node,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, property]) => [
          key,
          property.description === undefined
            ? { ...property, description: 'Left to other parts of nodepool.' }
            : explained(property),
        ]),
      ),
    }),
    ...(items && { items: explained(items) }),
    ...(allOf && { allOf: allOf.map(explained) }),
    ...(otherwise && { else: explained(otherwise) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: explained(additionalProperties),
    }),
  };
}
