import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { LoopbackServer, LostResponse, type Reply, type Request } from '../loopback-server.ts';
import { ArmCloud, type ArmDoubleOptions, type ArmHandler, type ArmResponse, visible } from './arm-cloud.ts';
import { ArmError, ArmModels } from './arm-model.ts';
import { DISK, DISK_OPERATIONS } from './disk-operations.ts';
import { type BlobAccount, DiskStore } from './disk-store.ts';
import {
  DEFINITION_OPERATIONS,
  GALLERY_OPERATIONS,
  IMAGE_OPERATIONS,
  VERSION_OPERATIONS,
} from './image-operations.ts';

/** A request that the double has received. */
export interface ArmRequest {
  /** `PUT disks`, `POST disks/beginGetAccess`, `GET operations`, `PUT pages`. */
  readonly name: string;
  /** Path without the query, whose signature is a secret. */
  readonly path: string;
}

/**
 * Overrides the double's response to a request. Undefined: the double responds. `lost`: the double carries out the
 * request, but its response does not arrive. `later`: the operation that it starts fails with the error.
 */
export type ArmFault = (request: ArmRequest) => ArmError | { readonly later: ArmError } | 'lost' | undefined;

const DEFAULTS: ArmDoubleOptions = {
  subscription: '00000000-0000-0000-0000-000000000001',
  resourceGroups: ['images'],
  locations: ['westeurope', 'northeurope'],
  lag: 0,
  polls: 1,
  pageSize: 50,
  tokenLifetime: 86_400,
  diskQuota: 50_000,
  actions: ['*'],
  relaysPages: false,
};

/** Collections of Microsoft.Compute, with the API versions in the SDK. */
const COLLECTIONS: readonly {
  readonly pattern: RegExp;
  readonly name: string;
  readonly version: string;
  readonly operations: Readonly<Record<string, ArmHandler>>;
}[] = [
  { pattern: /\/disks$/i, name: 'disks', version: '2026-03-02', operations: DISK_OPERATIONS },
  { pattern: /\/versions$/i, name: 'versions', version: '2025-12-03', operations: VERSION_OPERATIONS },
  {
    pattern: /\/galleries\/[^/]+\/images$/i,
    name: 'definitions',
    version: '2025-12-03',
    operations: DEFINITION_OPERATIONS,
  },
  { pattern: /\/images$/i, name: 'images', version: '2026-04-01', operations: IMAGE_OPERATIONS },
  { pattern: /\/galleries$/i, name: 'galleries', version: '2025-12-03', operations: GALLERY_OPERATIONS },
];

/**
 * A server that behaves like Azure Resource Manager for disks, images and galleries. It rejects requests that do not
 * match the published model in the SDK. The pages of the disks are real ones, in Azurite.
 */
export class ArmDouble extends LoopbackServer {
  /** The requests, in the order of their arrival. */
  readonly requests: ArmRequest[] = [];
  /** Default: no faults. */
  fault: ArmFault = () => undefined;
  readonly #options: ArmDoubleOptions;
  readonly #account: BlobAccount;
  /** Valid tokens, with their expiry in seconds since the epoch. */
  readonly #tokens = new Map<string, number>();
  #cloud: ArmCloud | undefined;

  private constructor(account: BlobAccount, options: Partial<ArmDoubleOptions>) {
    super();
    this.#options = { ...DEFAULTS, ...options };
    this.#account = account;
  }

  static async start(
    account: BlobAccount,
    options: Partial<ArmDoubleOptions> = {},
    port = 0,
  ): Promise<ArmDouble> {
    const double = await new ArmDouble(account, options).listen(port);
    const origin = double.#options.relaysPages ? double.endpoint : account.url;
    double.#cloud = new ArmCloud(double.#options, new DiskStore(account, origin), await ArmModels.load());
    return double;
  }

  get subscription(): string {
    return this.#options.subscription;
  }

  get cloud(): ArmCloud {
    if (this.#cloud === undefined) throw new Error('the double is not running');
    return this.#cloud;
  }

  /** Variables that make the managed identity of `@azure/identity` get its tokens here. */
  get environment(): Record<string, string> {
    return { IDENTITY_ENDPOINT: `${this.endpoint}/msi/token`, IDENTITY_HEADER: 'double' };
  }

  /** Creates a token that the double accepts. */
  issueToken(): { readonly token: string; readonly expiresOnTimestamp: number } {
    const token = randomUUID();
    const expiry = Math.floor(Date.now() / 1000) + this.#options.tokenLifetime;
    this.#tokens.set(token, expiry);
    return { token, expiresOnTimestamp: expiry * 1000 };
  }

  /** Adds a gallery, as an administrator does. */
  addGallery(name: string, resourceGroup = 'images'): void {
    const parent = `/subscriptions/${this.subscription}/resourceGroups/${resourceGroup}`;
    const id = `${parent}/providers/Microsoft.Compute/galleries/${name}`;
    const properties = { provisioningState: 'Succeeded' };
    const location = this.#options.locations[0] ?? '';
    this.cloud.resources.put({ id, name, type: 'Microsoft.Compute/galleries', location, properties });
  }

  /** Returns the content of an image, version or disk, without the footer. */
  async content(id: string): Promise<Buffer> {
    const { content = '' } = this.cloud.resources.get(id);
    return await this.cloud.pages.read(content);
  }

  /** Returns the resources of a type, such as `Microsoft.Compute/disks`. */
  ofType(
    type: string,
  ): readonly { readonly id: string; readonly properties: Readonly<Record<string, unknown>> }[] {
    return this.cloud.resources.all().filter((resource) => resource.type === type);
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url?.startsWith(`/${this.#account.account}/`)) await this.#relay(request, response);
    else await super.serve(request, response);
  }

  protected override async respond(request: Request): Promise<Reply> {
    try {
      const { status, body, operation } = await this.#respond(request);
      const headers = { 'x-ms-request-id': randomUUID(), ...(operation && this.#locations(operation.id)) };
      return { status, body, headers };
    } catch (error) {
      if (!(error instanceof ArmError)) throw error;
      const { code, message, status, headers } = error;
      const all = { 'x-ms-request-id': randomUUID(), ...headers };
      return { status, body: { error: { code, message } }, headers: all };
    }
  }

  #locations(id: string): Record<string, string> {
    const base = `${this.endpoint}/subscriptions/${this.subscription}/providers/Microsoft.Compute/locations/all`;
    return {
      'azure-asyncoperation': `${base}/operations/${id}?api-version=2026-03-02`,
      location: `${base}/operationResults/${id}?api-version=2026-03-02`,
    };
  }

  async #respond(request: Request): Promise<ArmResponse> {
    const { method, url, body: bytes } = request;
    const body: unknown = bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
    const path = url.pathname.replace(/\/$/, '');
    if (path === '/msi/token') return this.#token(request);
    this.#authorize(request);
    const parts = path.split('/').slice(1).map(decodeURIComponent);
    const version = url.searchParams.get('api-version');
    if (version === null) {
      throw new ArmError('MissingApiVersionParameter', 'The api-version query parameter is required.');
    }
    if (parts[1] !== this.subscription) {
      const reason = `The subscription '${parts[1]}' could not be found.`;
      throw new ArmError('SubscriptionNotFound', reason, 404);
    }
    const operation = /\/(?<kind>operations|operationResults)\/(?<id>[^/]+)$/.exec(path)?.groups;
    if (operation !== undefined) {
      this.#note('GET operations', path);
      return await this.#operation(operation.id ?? '', operation.kind === 'operations');
    }
    const [, group] = /\/resourceGroups\/([^/]+)/i.exec(path) ?? [];
    if (group !== undefined && !this.#options.resourceGroups.includes(group.toLowerCase())) {
      throw new ArmError('ResourceGroupNotFound', `Resource group '${group}' could not be found.`, 404);
    }
    if (/\/usages$/i.test(path)) return this.#usages(path);
    if (/\/Microsoft\.Authorization\/permissions$/i.test(path)) {
      this.#note('GET permissions', path);
      return { status: 200, body: { value: [{ actions: this.#options.actions, notActions: [] }] } };
    }
    return await this.#compute(method, `/${parts.join('/')}`, version, url, body);
  }

  async #compute(
    method: string,
    path: string,
    version: string,
    url: URL,
    body: unknown,
  ): Promise<ArmResponse> {
    const [, action] = /\/(beginGetAccess|endGetAccess)$/.exec(path) ?? [];
    const id = action === undefined ? path : path.slice(0, -action.length - 1);
    const at = id.lastIndexOf('/');
    const [parent, name] = [id.slice(0, at), id.slice(at + 1)];
    const list = COLLECTIONS.find(({ pattern }) => pattern.test(id));
    const collection = list ?? COLLECTIONS.find(({ pattern }) => pattern.test(parent));
    if (collection === undefined)
      throw new ArmError('InvalidResourceType', `no resource type has ${path}`, 404);
    if (collection.version !== version) {
      const reason = `No registered resource provider found for API version '${version}'.`;
      throw new ArmError('NoRegisteredProviderFound', reason);
    }
    const fault = this.#note(`${method} ${collection.name}${action === undefined ? '' : `/${action}`}`, path);
    if (list !== undefined && method === 'GET') return this.#list(id, url);
    const handler = collection.operations[action === undefined ? method : `${method} ${action}`];
    if (handler === undefined) throw new ArmError('MethodNotAllowed', `${method} is not allowed`, 405);
    const answer = await handler(this.cloud, { method, id, name, body });
    if (fault === 'lost') throw new LostResponse();
    if (fault === undefined || answer.operation === undefined) return answer;
    const resource = this.cloud.resources.find(id);
    if (resource !== undefined) resource.properties.provisioningState = 'Failed';
    Object.assign(answer.operation, {
      status: 'Failed',
      error: { code: fault.later.code, message: fault.later.message },
    });
    return answer;
  }

  /** Records a request. @throws ArmError of an injected fault */
  #note(name: string, path: string): 'lost' | { readonly later: ArmError } | undefined {
    this.requests.push({ name, path });
    const fault = this.fault({ name, path });
    if (fault instanceof ArmError) throw fault;
    return fault;
  }

  #list(id: string, url: URL): ArmResponse {
    const all = this.cloud.resources.list(id).map(visible);
    const start = Number(url.searchParams.get('$skiptoken') ?? 0);
    const end = start + this.#options.pageSize;
    const next = new URL(url);
    next.searchParams.set('$skiptoken', String(end));
    return {
      status: 200,
      body: { value: all.slice(start, end), ...(end < all.length && { nextLink: next.href }) },
    };
  }

  async #operation(id: string, isStatus: boolean): Promise<ArmResponse> {
    const operation = await this.cloud.operations.ask(id);
    const { status, error, result } = operation;
    if (isStatus) return { status: 200, body: { status, ...(error && { error }) } };
    if (status === 'InProgress') return { status: 202 };
    return error === undefined ? { status: 200, body: result ?? {} } : { status: 400, body: { error } };
  }

  #usages(path: string): ArmResponse {
    this.#note('GET usages', path);
    const location = /\/locations\/([^/]+)\//i.exec(path)?.[1];
    const count = this.ofType(DISK).length;
    const name = {
      value: 'StandardDiskCount',
      localizedValue: `Standard Storage Managed Disks in ${location}`,
    };
    return {
      status: 200,
      body: { value: [{ unit: 'Count', currentValue: count, limit: this.#options.diskQuota, name }] },
    };
  }

  #token({ headers, url }: Request): ArmResponse {
    this.#note('GET token', url.pathname);
    if (headers['x-identity-header'] !== 'double') throw new ArmError('Unauthorized', 'wrong header', 401);
    const { token, expiresOnTimestamp } = this.issueToken();
    return {
      status: 200,
      body: {
        access_token: token,
        expires_on: String(expiresOnTimestamp / 1000),
        resource: url.searchParams.get('resource'),
        token_type: 'Bearer',
      },
    };
  }

  #authorize({ headers }: Request): void {
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    const expiry = this.#tokens.get(token ?? '');
    if (expiry !== undefined && expiry > Date.now() / 1000) return;
    const [code, reason] =
      expiry === undefined
        ? ['InvalidAuthenticationToken', 'The access token is invalid.']
        : [
            'ExpiredAuthenticationToken',
            'The access token expiry UTC time is earlier than the current time.',
          ];
    throw new ArmError(code, reason, 401);
  }

  /** Forwards a request for pages to Azurite. */
  async #relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', this.endpoint);
    const entry = { name: `${request.method} pages`, path: pathname };
    this.requests.push(entry);
    const fault = this.fault(entry);
    if (fault instanceof ArmError) {
      request.resume();
      const body = `<?xml version="1.0"?><Error><Code>${fault.code}</Code><Message>${fault.message}</Message></Error>`;
      const headers = { 'content-type': 'application/xml', 'x-ms-error-code': fault.code, ...fault.headers };
      response.writeHead(fault.status, headers).end(body);
      return;
    }
    const { method, url, headers } = request;
    const upstream = send(new URL(url ?? '', this.#account.url), {
      method,
      headers: { ...headers, host: new URL(this.#account.url).host },
    });
    const answered = Promise.withResolvers<IncomingMessage>();
    upstream.once('response', answered.resolve).once('error', answered.reject);
    request.once('close', () => {
      if (!request.complete) upstream.destroy(new Error('the client is gone'));
    });
    request.pipe(upstream);
    const answer = await answered.promise;
    if (fault === 'lost') {
      answer.resume();
      response.destroy();
      return;
    }
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  }
}
