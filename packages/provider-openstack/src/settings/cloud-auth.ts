import type { AuthScope, CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import { type Mapping, type MergedCloud, mappingAt } from './merged-cloud.ts';

/** Credentials and settings of a provider in `nodepool.yaml`, which take precedence over `clouds.yaml`. */
export interface NodepoolCredentials {
  /** Name of the provider, for messages. */
  readonly name: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly projectId?: string | undefined;
  readonly projectName?: string | undefined;
  /** `api-timeout`, in seconds. */
  readonly apiTimeout?: number | undefined;
}

type Reader = (name: string) => string | undefined;

/** Newer names of keys in `clouds.yaml`, each with its older name. */
const OLDER_NAMES: Readonly<Record<string, string>> = {
  endpoint: 'url',
  username: 'user_name',
  token: 'auth_token',
  project_id: 'tenant_id',
  project_name: 'tenant_name',
};

/**
 * Keys for which the newer name next to `auth` takes precedence over the older name in `auth`. For other keys it is the
 * reverse.
 */
const NEWER_NAME_FIRST: readonly string[] = ['token', 'project_id', 'project_name'];

/**
 * Returns a reader that looks for a credential in the provider, in the cloud's `auth` and next to `auth`, in the order
 * of os-client-config 1.22. In openstacksdk 2.0, projects and domains next to `auth` take precedence over those in
 * `auth`.
 */
function credentialReader(cloud: MergedCloud, provider: NodepoolCredentials): Reader {
  const { values } = cloud;
  const auth = mappingAt(values, 'auth');
  const overrides: Mapping = {
    auth_url: provider.authUrl,
    username: provider.username,
    password: provider.password,
    project_id: provider.projectId,
    project_name: provider.projectName,
  };
  return (name) => {
    const older = OLDER_NAMES[name] ?? name;
    const configured = NEWER_NAME_FIRST.includes(name)
      ? [auth[name], values[name], auth[older], values[older]]
      : [auth[name], auth[older], values[name], values[older]];
    const set = [overrides[name], ...configured].find((value) => (value ?? '') !== '');
    return cloud.rawText(name, { [name]: set });
  };
}

/** Supported values of `auth_type`. */
const AUTH_TYPES: Readonly<Record<string, { type: CloudAuth['type']; version?: 2 | 3 }>> = {
  password: { type: 'password' },
  v2password: { type: 'password', version: 2 },
  v3password: { type: 'password', version: 3 },
  token: { type: 'token' },
  v2token: { type: 'token', version: 2 },
  v3token: { type: 'token', version: 3 },
  v3applicationcredential: { type: 'application-credential' },
  none: { type: 'none' },
  None: { type: 'none' },
};

const ADD_TO_AUTH = 'add it to "auth" of the cloud, or to the provider';

/**
 * Reads a cloud's authentication from its `auth_type` and credentials.
 *
 * @param imageEndpoint fixed URL of the image service, if any
 * @throws CloudError `invalid-settings` for an unsupported `auth_type`, a missing value, or two scopes
 */
export function cloudAuth(
  cloud: MergedCloud,
  provider: NodepoolCredentials,
  imageEndpoint: string | undefined,
): CloudAuth {
  const named = cloud.text('auth_type') ?? cloud.text('auth_plugin') ?? 'password';
  const row = Object.hasOwn(AUTH_TYPES, named) ? AUTH_TYPES[named] : undefined;
  if (row === undefined) {
    const supported = Object.keys(AUTH_TYPES).filter((name) => name !== 'None');
    throw cloud.invalid('its auth_type is not supported', `use one of ${supported.join(', ')}`);
  }
  const optional = credentialReader(cloud, provider);
  const required = (name: string): string => {
    const value = optional(name);
    if (value === undefined) throw cloud.invalid(`${name} is missing`, ADD_TO_AUTH);
    return value;
  };
  const user = (): NamedInDomain => {
    const found = namedInDomain('user', optional);
    if (found === undefined) throw cloud.invalid('username is missing', ADD_TO_AUTH);
    return found;
  };
  if (row.type === 'none') {
    const endpoint = optional('endpoint') ?? imageEndpoint;
    if (endpoint !== undefined) return { type: 'none', endpoint };
    throw cloud.invalid('auth_type none needs the URL of the image service', 'add image_endpoint_override');
  }
  const url = cloud.filledIn('auth_url', required('auth_url'));
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw cloud.invalid('auth_url is not a URL', 'write one that begins with https:// or http://');
  }
  if (row.type === 'application-credential') {
    const secret = required('application_credential_secret');
    const id = optional('application_credential_id');
    if (id !== undefined) return { type: row.type, url, id, secret };
    const name = optional('application_credential_name');
    if (name !== undefined) return { type: row.type, url, name, user: user(), secret };
    throw cloud.invalid('application_credential_id is missing', 'add it to "auth" of the cloud');
  }
  const version = row.version === undefined ? {} : { version: row.version };
  const common = { url, scope: scopeOf(cloud, optional), ...version };
  return row.type === 'token'
    ? { type: row.type, token: required('token'), ...common }
    : { type: row.type, user: user(), password: required('password'), ...common };
}

function scopeOf(cloud: MergedCloud, optional: Reader): AuthScope {
  const project = namedInDomain('project', optional);
  const [id, name] = [optional('domain_id'), optional('domain_name')];
  const domain = hasProject(optional) ? undefined : id === undefined ? name && { name } : { id };
  const system = optional('system_scope');
  if (optional('trust_id') !== undefined) {
    throw cloud.invalid('trust_id is not supported', 'name a project');
  }
  if (system !== undefined && system !== 'all') {
    throw cloud.invalid('system_scope is unknown', 'write "all", or name a project');
  }
  if ([project, domain, system].filter((scope) => scope !== undefined).length > 1) {
    throw cloud.invalid('a token is for a project, a domain or the system', 'keep only one of them');
  }
  if (project !== undefined) return { project };
  if (domain) return { domain };
  return system === undefined ? {} : { system };
}

/** Reads the id, else the name and the domain, whose id also takes precedence over its name. */
function namedInDomain(kind: 'user' | 'project', optional: Reader): NamedInDomain | undefined {
  const id = optional(`${kind}_id`);
  if (id !== undefined) return { id };
  const name = optional(kind === 'user' ? 'username' : 'project_name');
  if (name === undefined) return undefined;
  // `domain_*` is the domain of the user and the project. Without a project it is the scope.
  const shared: Reader = (key) => (hasProject(optional) ? optional(key) : undefined);
  const domainId = optional(`${kind}_domain_id`) ?? shared('domain_id');
  if (domainId !== undefined) return { name, domainId };
  const domainName = optional(`${kind}_domain_name`) ?? shared('domain_name');
  if (domainName !== undefined) return { name, domainName };
  const defaultId = optional('default_domain_id');
  if (defaultId !== undefined) return { name, domainId: defaultId };
  const defaultName = optional('default_domain_name');
  return defaultName === undefined ? { name } : { name, domainName: defaultName };
}

function hasProject(optional: Reader): boolean {
  return (optional('project_id') ?? optional('project_name')) !== undefined;
}
