import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { recordSchema } from '../terms/record-schema.ts';
import { packageVersion } from '../terms/version.ts';

/** Path under which the API is served. */
export const API = '/api/v1';

/** A JSON Schema, or a part of one. */
type Schema = Readonly<Record<string, unknown>>;

declare module 'fastify' {
  interface FastifySchema {
    readonly summary?: string;
    readonly description?: string;
    /** Media type of a response that is not JSON. */
    readonly produces?: readonly string[];
    readonly security?: readonly Schema[];
  }
}

/** The parts of a route's schema that its documentation uses. */
interface RouteSchema extends Pick<FastifySchema, 'summary' | 'description' | 'produces' | 'security'> {
  readonly params?: { readonly properties?: Readonly<Record<string, Schema>> };
  readonly querystring?: { readonly properties?: Readonly<Record<string, Schema>> };
  readonly response?: Readonly<Record<string, Schema & { readonly description?: string }>>;
}

/** Serves the OpenAPI document of all routes that are added after this call. */
export function serveOpenApi(server: FastifyInstance): void {
  const paths: Record<string, Record<string, unknown>> = {};
  server.addHook('onRoute', ({ url, method, schema }: RouteOptions) => {
    if (!url.startsWith(`${API}/`) || schema === undefined) return;
    const path = url.slice(API.length).replaceAll(/:([\w-]+)/g, '{$1}');
    for (const name of [method].flat()) {
      if (name === 'HEAD') continue;
      paths[path] = { ...paths[path], [name.toLowerCase()]: operation(schema as RouteSchema) };
    }
  });
  server.get(`${API}/openapi.json`, () => ({
    openapi: '3.1.0',
    info: {
      title: 'nodepool-builder',
      description: 'Disk images, their builds and uploads, and the builders.',
      version: packageVersion(),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: API }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The token of --web-token-file.' },
      },
      schemas: { Error: ERROR },
    },
  }));
}

/** Schema of the response to a failed request. */
const ERROR = recordSchema({
  error: { type: 'string', description: 'Error message with the remedy.' },
});

function operation({ summary, description, params, querystring, response = {}, ...schema }: RouteSchema) {
  const { produces: [type = 'application/json'] = [], security } = schema;
  const parameters = [
    ...parametersIn('path', params?.properties, true),
    ...parametersIn('query', querystring?.properties, false),
  ];
  const responses = Object.entries(response).map(([status, { description: meaning, ...content }]) => {
    const byType = { [Number(status) < 400 ? type : 'application/json']: { schema: content } };
    return [status, { description: meaning ?? 'The response.', content: byType }];
  });
  const failure = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  return {
    summary,
    ...(description !== undefined && { description }),
    ...(security !== undefined && { security }),
    parameters,
    responses: {
      ...Object.fromEntries(responses),
      default: { description: 'The request failed.', content: failure },
    },
  };
}

function parametersIn(
  place: 'path' | 'query',
  properties: Readonly<Record<string, Schema>> = {},
  required: boolean,
): readonly unknown[] {
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    return { name, in: place, required, description, schema };
  });
}
