import { createRequire } from 'node:module';

/** An error as Google reports it. */
export class GoogleError extends Error {
  readonly status: number;
  /** `rateLimitExceeded`. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

interface Field {
  readonly type: string;
  readonly keyType?: string;
  readonly rule?: 'repeated';
  readonly options?: { readonly '(google.api.field_behavior)'?: string };
}

interface Message {
  readonly fields: Readonly<Record<string, Field>>;
  readonly nested?: Readonly<Record<string, { readonly values?: Readonly<Record<string, number>> }>>;
}

interface Method {
  readonly requestType: string;
  readonly options: Readonly<Record<string, string>>;
}

interface Service {
  readonly methods: Readonly<Record<string, Method>>;
}

interface Descriptor {
  readonly nested: Readonly<Record<string, Descriptor>>;
}

/** Google's published description of Compute Engine, which the SDK contains. */
const ROOT = createRequire(import.meta.url)('@google-cloud/compute/build/protos/protos.json') as Descriptor;

const TYPES = ['google', 'cloud', 'compute', 'v1'].reduce(
  (descriptor, name) => descriptor.nested[name] as Descriptor,
  ROOT,
).nested as unknown as Readonly<Record<string, Message & Service>>;

const NUMBER = /^-?\d+$/;

/** A method of the API, with the location of its parameters. */
export interface Route {
  /** `Images.Insert`. */
  readonly name: string;
  readonly verb: string;
  readonly pattern: RegExp;
  readonly body: string | undefined;
  readonly request: Message;
}

/** Routes of methods, from the description. */
export function routesOf(names: readonly string[]): readonly Route[] {
  return names.map((name) => {
    const [service = '', method = ''] = name.split('.');
    const { requestType, options } = (TYPES[service] as Service).methods[method] as Method;
    const [verb = '', path = ''] = ['get', 'post', 'delete', 'patch', 'put'].flatMap((one) => {
      const found = options[`(google.api.http).${one}`];
      return found === undefined ? [] : [one.toUpperCase(), found];
    });
    const pattern = new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
    const body = options['(google.api.http).body'];
    return { name, verb, pattern, body, request: TYPES[requestType] as Message };
  });
}

/**
 * Parses a request.
 *
 * @throws GoogleError for a parameter that the description does not contain, a missing one, or one of the wrong type
 */
export function readRequest(
  route: Route,
  path: Readonly<Record<string, string>>,
  query: URLSearchParams,
  body: unknown,
): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(path)) input[camel(name)] = decodeURIComponent(value);
  for (const [name, value] of query) {
    if (name.startsWith('$')) continue;
    const field = route.request.fields[name];
    if (field === undefined) throw invalid(`Unknown name "${name}": Cannot bind query parameter.`);
    input[name] = field.type === 'bool' ? value === 'true' : NUMBER.test(value) ? Number(value) : value;
  }
  if (route.body !== undefined) {
    const name = camel(route.body);
    const field = route.request.fields[name] as Field;
    checkValue(field, body, name);
    input[name] = body;
  }
  for (const [name, { options }] of Object.entries(route.request.fields)) {
    if (options?.['(google.api.field_behavior)'] === 'REQUIRED' && input[name] === undefined) {
      throw invalid(`Required field '${name}' not specified`);
    }
  }
  return input;
}

function checkValue(field: Field, value: unknown, path: string): void {
  if (field.rule === 'repeated') {
    if (!Array.isArray(value)) throw invalid(`Invalid value at '${path}': not a list`);
    for (const item of value) checkValue({ type: field.type }, item, path);
    return;
  }
  if (field.keyType !== undefined) {
    for (const item of Object.values(Object(value) as object)) checkValue({ type: field.type }, item, path);
    return;
  }
  const message = TYPES[field.type];
  if (message?.fields !== undefined) {
    checkMessage(message, value, path);
    return;
  }
  const isRight =
    (field.type === 'string' && typeof value === 'string') ||
    (field.type === 'bool' && typeof value === 'boolean') ||
    (/int/.test(field.type) && NUMBER.test(String(value)));
  if (!isRight) throw invalid(`Invalid value at '${path}' (TYPE_${field.type.toUpperCase()})`);
}

function checkMessage(message: Message, value: unknown, path: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`Invalid value at '${path}': not an object`);
  }
  for (const [name, inner] of Object.entries(value)) {
    const field = message.fields[name];
    if (field === undefined)
      throw invalid(`Invalid JSON payload received. Unknown name "${name}" at '${path}'`);
    checkValue(field, inner, `${path}.${name}`);
    const values = message.nested?.[`${name.charAt(0).toUpperCase()}${name.slice(1)}`]?.values;
    if (values !== undefined && typeof inner === 'string' && !(inner in values)) {
      throw invalid(`Invalid value for field '${path}.${name}': '${inner}'`);
    }
  }
}

function camel(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

export function invalid(message: string): GoogleError {
  return new GoogleError(400, 'invalid', message);
}
