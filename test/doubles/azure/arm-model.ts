/** An error as Azure Resource Manager reports it. */
export class ArmError extends Error {
  readonly code: string;
  readonly status: number;
  /** Further headers of the response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: string, message: string, status = 400, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.headers = headers;
  }
}

/** Value of a JSON object. */
export type Json = Readonly<Record<string, unknown>>;

type Translate = (value: unknown) => unknown;

/** Functions of one SDK model, which read it from the wire and write it. */
interface Model {
  readonly read: Translate;
  readonly write: Translate;
}

/** SDK files with the models of requests, and the models in each. */
const FILES = {
  computeDisk: ['disk', 'grantAccessData'],
  compute: ['image'],
  computeGallery: ['galleryImage', 'galleryImageVersion'],
} as const;

/** Name of a request's model. */
export type ModelName = (typeof FILES)[keyof typeof FILES][number];

/** Members of responses, which requests may repeat. */
const READ_ONLY: ReadonlySet<string> = new Set(['id', 'name', 'type', 'systemData', 'provisioningState']);

/** The published models in the SDK. */
export class ArmModels {
  readonly #models: ReadonlyMap<string, Model>;

  private constructor(models: ReadonlyMap<string, Model>) {
    this.#models = models;
  }

  static async load(): Promise<ArmModels> {
    const sdk = import.meta.resolve('@azure/arm-compute');
    const models = new Map<string, Model>();
    for (const [file, names] of Object.entries(FILES)) {
      const url = new URL(`models/${file}/models.js`, sdk);
      const functions = (await import(url.href)) as Readonly<Record<string, Translate | undefined>>;
      for (const name of names) {
        const write = functions[`${name}Serializer`];
        // A request whose model is not also used for responses has no reader: its members have the same names.
        if (write === undefined) throw new Error(`the SDK has no model ${name}`);
        models.set(name, { read: functions[`${name}Deserializer`] ?? ((value) => value), write });
      }
    }
    return new ArmModels(models);
  }

  /** @throws ArmError for a member that the model does not contain */
  check(name: ModelName, body: unknown): Json {
    const model = this.#models.get(name);
    if (!isObject(body) || model === undefined) {
      throw new ArmError('InvalidRequestContent', 'The request content was invalid: it is not an object.');
    }
    const known: unknown = JSON.parse(JSON.stringify(model.write(model.read(structuredClone(body)))));
    checkMembers(body, known, '');
    return body;
  }
}

function checkMembers(value: unknown, known: unknown, path: string): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      checkMembers(item, Array.isArray(known) ? known[index] : undefined, `${path}[${index}]`);
    }
    return;
  }
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    if (READ_ONLY.has(name) && (path === '' || path === '.properties')) continue;
    const there = isObject(known) && Object.hasOwn(known, name);
    if (!there) {
      const reason = `Could not find member '${name}' on object at '${path.slice(1)}'.`;
      throw new ArmError('InvalidRequestContent', reason);
    }
    checkMembers(member, known[name], `${path}.${name}`);
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the object at a path of names. @throws ArmError if it is absent or something else */
export function objectAt(value: Json, ...path: string[]): Json {
  let found: unknown = value;
  for (const name of path) found = isObject(found) ? found[name] : undefined;
  if (isObject(found)) return found;
  throw missing(path.join('.'));
}

/** Returns the text of a member. @throws ArmError if it is absent, something else, or none of `values` */
export function textAt(value: Json, name: string, values?: Readonly<Record<string, string>>): string {
  const text = value[name];
  if (typeof text !== 'string' || text === '') throw missing(name);
  if (values === undefined || Object.values(values).includes(text)) return text;
  const allowed = Object.values(values).join(', ');
  throw new ArmError('InvalidParameter', `The value '${text}' of '${name}' is none of: ${allowed}.`);
}

function missing(name: string): ArmError {
  return new ArmError('InvalidParameter', `Required parameter '${name}' is missing (null).`);
}

/** Max tags of a resource. */
const MAX_TAGS = 50;

/** Reads and checks the tags of a resource. */
export function tagsOf(body: Json): Record<string, string> {
  const tags = Object.entries(isObject(body.tags) ? body.tags : {});
  if (tags.length > MAX_TAGS) throw new ArmError('TooManyTags', `The resource has ${tags.length} tags.`);
  const names = new Set<string>();
  for (const [name, value] of tags) {
    if (name.length > 512 || /[<>%&\\?/]/.test(name) || names.has(name.toLowerCase())) {
      throw new ArmError('InvalidTagName', `The tag name '${name}' is invalid.`);
    }
    names.add(name.toLowerCase());
    if (typeof value !== 'string' || value.length > 256) {
      throw new ArmError('InvalidTagValue', `The value of the tag '${name}' is invalid.`);
    }
  }
  return Object.fromEntries(tags) as Record<string, string>;
}
