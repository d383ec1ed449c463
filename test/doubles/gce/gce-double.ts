import { CRC32C } from '@google-cloud/storage';
import { LoopbackServer, type Outcome, type Request } from '../loopback-server.ts';
import { GoogleError, invalid, readRequest, routesOf } from './model.ts';
import { type OperationError, Operations } from './operations.ts';
import { StorageDouble } from './storage-double.ts';
import { TokenDouble } from './token-double.ts';

/** An image in the double, as the API describes it. */
export interface ImageState {
  readonly project: string;
  readonly resource: Record<string, unknown> & { readonly name: string };
  status: 'PENDING' | 'READY' | 'FAILED';
  /** Number of descriptions that show it as pending, or still show it after its deletion. */
  pendingReads: number;
  isDeleted: boolean;
}

/** Behaviour of the double. */
export interface GceDoubleOptions {
  /** Project of the credentials. */
  readonly project: string;
  /** Number of descriptions that show a resource as pending. */
  readonly pendingReads: number;
}

/** A request that the double has received. */
export interface GceRequest {
  /** `Images.Insert`, or `PUT /upload/storage/…` for Cloud Storage. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/**
 * Overrides the double's response to a request. Undefined: the double responds. `lost`: the double carries out the
 * request, but its response does not arrive. `silent`: like `lost`, but the connection stays open.
 */
export type GceFault = (request: GceRequest) => GoogleError | 'lost' | 'silent' | undefined;

const DEFAULTS: GceDoubleOptions = { project: 'ci-project', pendingReads: 0 };

const ROUTES = routesOf([
  'Images.Insert',
  'Images.Get',
  'Images.List',
  'Images.Delete',
  'Images.Deprecate',
  'Images.GetFromFamily',
  'GlobalOperations.Get',
  'Projects.Get',
]);

/** Valid names of Compute Engine resources. */
const NAME = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Valid keys and values of labels. */
const LABEL_KEY = /^[a-z][a-z0-9_-]{0,62}$/;
const LABEL_VALUE = /^[a-z0-9_-]{0,63}$/;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A server that behaves like Compute Engine's images and Cloud Storage's uploads. It rejects requests that do not match
 * Google's description in the SDK. Clients reach it with `endpoint` and `storage-endpoint`, and with credentials whose
 * token it issues.
 */
export class GceDouble extends LoopbackServer {
  readonly images: ImageState[] = [];
  readonly storage = new StorageDouble((bytes) => {
    const crc = new CRC32C();
    crc.update(bytes);
    return crc.toString();
  });
  readonly requests: GceRequest[] = [];
  /** Default: no faults. */
  fault: GceFault = () => undefined;
  /** Error of each import. Default: none. */
  importError: ((image: ImageState) => OperationError | undefined) | undefined;
  /** Permissions that the credentials lack. */
  readonly missingPermissions = new Set<string>();
  /** Max images in a project. */
  imageQuota = 100;
  /** Error of each deletion. Default: none. */
  deleteError: OperationError | undefined;
  /** Error of each deprecation. Default: none. */
  deprecateError: OperationError | undefined;
  /** Tokens and keys of credentials. */
  readonly tokens = new TokenDouble();
  /** Max images in one response to a list. */
  pageSize = 500;
  readonly #options: GceDoubleOptions;
  readonly #operations = new Operations();
  readonly #byRequestId = new Map<string, object>();

  private constructor(options: Partial<GceDoubleOptions>) {
    super();
    this.#options = { ...DEFAULTS, ...options };
  }

  static async start(options: Partial<GceDoubleOptions> = {}): Promise<GceDouble> {
    return await new GceDouble(options).listen();
  }

  /**
   * Returns the content of a `credentials-file` for workload identity federation, whose token the double issues.
   *
   * @param subjectFile file with the token of the host, which contains the secret
   */
  credentials(subjectFile: string): object {
    return {
      type: 'external_account',
      audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/p',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${this.endpoint}/token`,
      credential_source: { file: subjectFile },
    };
  }

  /** Returns the content of a `credentials-file` with a new service account key. */
  createKey(): ReturnType<TokenDouble['createKey']> {
    return { ...this.tokens.createKey(), token_uri: `${this.endpoint}/token` };
  }

  protected override respond({ method, url, headers, body }: Request): Outcome {
    try {
      const token = this.tokens.respond(url.pathname, headers.authorization, body);
      if (token !== undefined) return token;
      // The URL of a session authorizes its requests.
      const isSession = url.searchParams.has('upload_id');
      if (!isSession && !this.tokens.accepts(headers.authorization)) {
        throw new GoogleError(401, 'authError', 'Request had invalid authentication credentials.');
      }
      const asked = this.#queriedPermissions(method, url, body);
      if (asked !== undefined) {
        this.#record({ operation: `${method} ${url.pathname}`, input: {} });
        const permissions = asked.filter((permission) => !this.missingPermissions.has(permission));
        return { status: 200, body: permissions.length === 0 ? {} : { permissions } };
      }
      if (!url.pathname.startsWith('/compute/')) {
        const entry = { operation: `${method} ${url.pathname}`, input: {} };
        const fault = this.#record(entry);
        const answered = this.storage.respond({ method, url, headers, body });
        if (answered === undefined) throw new GoogleError(404, 'notFound', 'Not Found');
        return fault ?? answered;
      }
      const route = ROUTES.find((one) => one.verb === method && one.pattern.test(url.pathname));
      if (route === undefined) throw new GoogleError(404, 'notFound', `${method} ${url.pathname}`);
      const path = { ...route.pattern.exec(url.pathname)?.groups } as Record<string, string>;
      const json: unknown = body.length > 0 ? JSON.parse(body.toString()) : undefined;
      const input = readRequest(route, path, url.searchParams, json);
      const fault = this.#record({ operation: route.name, input });
      const output = this.#compute(route.name, input);
      return fault ?? { status: 200, body: output };
    } catch (error) {
      if (!(error instanceof GoogleError)) throw error;
      const { status, reason, message } = error;
      const errors = [{ message, domain: 'global', reason }];
      return { status, body: { error: { code: status, message, errors } } };
    }
  }

  /** Returns the permissions that a request queries, in the project or in a bucket. */
  #queriedPermissions(method: string, url: URL, body: Buffer): readonly string[] | undefined {
    if (method === 'POST' && /^\/v3\/projects\/[^/]+:testIamPermissions$/.test(url.pathname)) {
      const { permissions } = JSON.parse(body.toString()) as { permissions?: unknown };
      if (!Array.isArray(permissions)) throw invalid('permissions: not a list');
      return permissions.map(String);
    }
    const bucket = /^\/storage\/v1\/b\/([^/]+)\/iam\/testPermissions$/.exec(url.pathname)?.[1];
    if (method !== 'GET' || bucket === undefined) return undefined;
    if (this.storage.missingBuckets.has(bucket)) {
      throw new GoogleError(404, 'notFound', 'The specified bucket does not exist.');
    }
    return url.searchParams.getAll('permissions');
  }

  #record(entry: GceRequest): 'lost' | 'silent' | undefined {
    this.requests.push(entry);
    const fault = this.fault(entry);
    if (fault instanceof GoogleError) throw fault;
    return fault;
  }

  #compute(name: string, input: Record<string, unknown>): object {
    const project = String(input.project);
    switch (name) {
      case 'Images.Insert':
        return this.#insert(project, input);
      case 'Images.Get':
        return describe(this.#image(project, String(input.image)));
      case 'Images.List':
        return this.#list(project, input);
      case 'Images.Delete': {
        const image = this.#image(project, String(input.image));
        if (this.#operations.isChanging(image)) throw notReady(image);
        if (this.deleteError !== undefined) {
          return this.#operations.start(image, { error: this.deleteError });
        }
        image.isDeleted = true;
        image.pendingReads = this.#options.pendingReads;
        if (image.pendingReads === 0) this.images.splice(this.images.indexOf(image), 1);
        return this.#operations.start(image);
      }
      case 'Images.Deprecate': {
        const image = this.#image(project, String(input.image));
        if (image.status !== 'READY') throw notReady(image);
        const effect = (): void => {
          image.resource.deprecated = input.deprecationStatusResource;
        };
        const reads = this.#options.pendingReads;
        return this.#operations.start(image, { reads, effect, error: this.deprecateError });
      }
      case 'GlobalOperations.Get':
        return this.#operations.read(String(input.operation));
      case 'Projects.Get': {
        if (this.missingPermissions.has('compute.projects.get')) {
          throw new GoogleError(403, 'forbidden', "Required 'compute.projects.get' permission");
        }
        const usage = this.images.filter((image) => image.project === project).length;
        return { name: project, quotas: [{ metric: 'IMAGES', limit: this.imageQuota, usage }] };
      }
      default:
        throw new GoogleError(501, 'notImplemented', name);
    }
  }

  #insert(project: string, input: Record<string, unknown>): object {
    const resource = input.imageResource as ImageState['resource'] & {
      labels?: Record<string, string>;
      rawDisk?: { source?: string };
    };
    const requestId = typeof input.requestId === 'string' ? input.requestId : undefined;
    const known = this.#byRequestId.get(requestId ?? '');
    if (known !== undefined) return known;
    if (!NAME.test(resource.name)) {
      throw new GoogleError(400, 'invalid', `Invalid value for field 'resource.name': '${resource.name}'`);
    }
    const labels = Object.entries(resource.labels ?? {});
    for (const [key, value] of labels) {
      const isLabel = LABEL_KEY.test(key) && LABEL_VALUE.test(value);
      if (!isLabel) throw invalid(`Invalid label '${key}': '${value}'`);
    }
    if (labels.length > 64) throw invalid('Labels can have at most 64 entries');
    const { description = '' } = resource as { description?: string };
    if (Buffer.byteLength(description) > 2048) {
      throw invalid("Invalid value for field 'resource.description': must be at most 2048 characters");
    }
    if (requestId !== undefined && !UUID.test(requestId)) throw invalid('requestId must be a UUID');
    if (this.images.some((one) => one.project === project && one.resource.name === resource.name)) {
      const reason = `The resource 'projects/${project}/global/images/${resource.name}' already exists`;
      throw new GoogleError(409, 'alreadyExists', reason);
    }
    const image: ImageState = {
      project,
      resource: { ...resource, creationTimestamp: new Date().toISOString() },
      status: 'PENDING',
      pendingReads: this.#options.pendingReads,
      isDeleted: false,
    };
    this.images.push(image);
    const source =
      /^https:\/\/storage\.googleapis\.com\/(.+)$/.exec(resource.rawDisk?.source ?? '')?.[1] ?? '';
    const error = this.storage.objects.has(source)
      ? this.importError?.(image)
      : { code: 'RESOURCE_NOT_FOUND', message: `The object ${source} was not found` };
    if (error !== undefined) image.status = 'FAILED';
    const operation = this.#operations.start(image, { error });
    if (requestId !== undefined) this.#byRequestId.set(requestId, operation);
    return operation;
  }

  #image(project: string, name: string): ImageState {
    const image = this.images.find((one) => one.project === project && one.resource.name === name);
    if (image === undefined) {
      const reason = `The resource 'projects/${project}/global/images/${name}' was not found`;
      throw new GoogleError(404, 'notFound', reason);
    }
    if (image.pendingReads-- > 0) return image;
    if (image.isDeleted) {
      this.images.splice(this.images.indexOf(image), 1);
      return this.#image(project, name);
    }
    if (image.status === 'PENDING') image.status = 'READY';
    return image;
  }

  #list(
    project: string,
    { filter, maxResults = this.pageSize, pageToken = 0 }: Record<string, unknown>,
  ): object {
    const conditions = typeof filter === 'string' ? filter.split(' ').map(readCondition) : [];
    const found = this.images.filter((image) => {
      const fields: Record<string, unknown> = { ...image.resource };
      return (
        image.project === project &&
        conditions.every(({ key, value }) => {
          const [first = '', second] = key.split('.');
          const field = fields[first] as Record<string, string> | string | undefined;
          return (
            (second === undefined ? field : (field as Record<string, string> | undefined)?.[second]) === value
          );
        })
      );
    });
    const first = Number(pageToken);
    const end = first + Math.min(Number(maxResults), this.pageSize);
    return {
      kind: 'compute#imageList',
      items: found.slice(first, end).map(describe),
      ...(end < found.length && { nextPageToken: String(end) }),
    };
  }
}

/** Reads `KEY="VALUE"`, in parentheses if it is one of several. */
function readCondition(text: string): { readonly key: string; readonly value: string } {
  const found = /^\(?([\w.]+)="([^\s"]+)"\)?$/.exec(text);
  if (found === null) throw invalid(`Invalid value for field 'filter': '${text}'`);
  const [, key = '', value = ''] = found;
  return { key, value };
}

function describe({ resource, status, isDeleted }: ImageState): object {
  return { ...resource, status: isDeleted ? 'DELETING' : status };
}

function notReady({ project, resource: { name } }: ImageState): GoogleError {
  const reason = `The resource 'projects/${project}/global/images/${name}' is not ready`;
  return new GoogleError(400, 'resourceNotReady', reason);
}
