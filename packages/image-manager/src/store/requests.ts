import { Ajv } from 'ajv';
import type { InvalidRequest, Request } from '../records.ts';
import { explain } from './tables.ts';

/** The property that each kind of request has beside its kind. */
const PROPERTIES: { readonly [K in Request['kind']]: Exclude<keyof Extract<Request, { kind: K }>, 'kind'> } =
  {
    build: 'diskimage',
    'delete-build': 'imageId',
    'delete-upload': 'uploadId',
    rollback: 'diskimage',
  };

const validate = new Ajv({ validateSchema: false, discriminator: true }).compile<Request>({
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: Object.entries(PROPERTIES).map(([kind, property]) => ({
    required: [property],
    properties: { kind: { const: kind }, [property]: { type: 'string' } },
  })),
});

/** Reads a request from the store, which may come from a newer release. */
export function parseRequest(text: string): Request | InvalidRequest {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch (error) {
    return { kind: 'invalid', reason: `it is not JSON: ${String(error)}; make the request again` };
  }
  if (validate(request)) return request;
  const [error] = validate.errors ?? [];
  const reason =
    error?.keyword === 'discriminator'
      ? 'this release does not know it; update the manager'
      : `${explain(error)}; make the request again`;
  return { kind: 'invalid', reason };
}
