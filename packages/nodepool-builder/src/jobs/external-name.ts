import { ImageError } from '@nodepool-builder/image-builder';
import { toText } from '../configuration/scalar.ts';

/** Values for the fields of `template-hostname`. */
export interface ExternalNameFields {
  readonly image: { readonly id: string; readonly name: string };
  /** Attributes of the provider in nodepool: `name`, `region_name` and so on. */
  readonly provider: Readonly<Record<string, unknown>>;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

/** Matches `{{`, `}}`, `{field}`, and single braces, which are invalid. */
const BRACES = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

/**
 * Makes the name of an image in a cloud: fills in `template-hostname`, in the notation of Python's `str.format`.
 *
 * @throws ImageError `invalid-configuration` for an unknown field or an unmatched brace
 */
export function externalName(template: string, fields: ExternalNameFields): string {
  return template.replace(BRACES, (braces, field?: string) => {
    if (field !== undefined) return fieldValue(field, template, fields);
    if (braces.length === 2) return braces.charAt(0);
    throw invalid(template, `has an unmatched "${braces}"; double it for a literal brace`);
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
  throw invalid(template, `has the unknown field {${field}}; use ${known.join(', ')}`);
}

function invalid(template: string, reason: string): ImageError {
  return new ImageError('invalid-configuration', `the template-hostname "${template}" ${reason}`);
}
