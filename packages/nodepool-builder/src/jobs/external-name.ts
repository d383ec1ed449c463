import { ImageError } from '@nodepool-builder/image-builder';
import { toText } from '../configuration/scalar.ts';

/** What the fields of `template-hostname` stand for. */
export interface ExternalNameFields {
  readonly image: { readonly id: string; readonly name: string };
  /** What nodepool knows of the provider: `name`, `region_name` and so on. */
  readonly provider: Readonly<Record<string, unknown>>;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

/** `{{`, `}}`, `{field}`; a brace that is none of these is a mistake. */
const BRACES = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

/**
 * What an image is called in a cloud: `template-hostname` with its fields filled in, in the notation of Python's
 * `str.format`.
 *
 * @throws ImageError `invalid-configuration` for a field that there is not, or a brace without its counterpart
 */
export function externalName(template: string, fields: ExternalNameFields): string {
  return template.replace(BRACES, (braces, field?: string) => {
    if (field !== undefined) return fieldValue(field, template, fields);
    if (braces.length === 2) return braces.charAt(0);
    throw wrong(template, `has a "${braces}" without its counterpart; write it twice to mean itself`);
  });
}

function fieldValue(
  field: string,
  template: string,
  { image, provider, timestamp }: ExternalNameFields,
): string {
  const values: Readonly<Record<string, unknown>> = {
    'image.id': image.id,
    'image.name': image.name,
    timestamp,
    ...Object.fromEntries(Object.entries(provider).map(([key, value]) => [`provider.${key}`, value])),
  };
  if (Object.hasOwn(values, field)) return values[field] == null ? 'None' : toText(values[field]);
  const known = Object.keys(values).map((key) => `{${key}}`);
  throw wrong(template, `has the unknown field {${field}}; use ${known.join(', ')}`);
}

function wrong(template: string, fault: string): ImageError {
  return new ImageError('invalid-configuration', `the template-hostname "${template}" ${fault}`);
}
