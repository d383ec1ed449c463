import { type Mapping, mappingAt } from './mapping.ts';
import type { NodepoolCredentials } from './settings-request.ts';

/**
 * What authentication may need, by the names of today, with the older names of the same (the last one found counts).
 * Most may stand in the cloud itself as well as in its `auth`.
 */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  auth_url: ['auth_url'],
  endpoint: ['url', 'endpoint'],
  user_id: ['user_id'],
  username: ['user_name', 'username'],
  password: ['password'],
  token: ['auth_token', 'token'],
  project_id: ['tenant_id', 'project_id'],
  project_name: ['tenant_name', 'project_name'],
  domain_id: ['domain_id'],
  domain_name: ['domain_name'],
  user_domain_id: ['user_domain_id'],
  user_domain_name: ['user_domain_name'],
  project_domain_id: ['project_domain_id'],
  project_domain_name: ['project_domain_name'],
  default_domain_id: ['default_domain_id'],
  default_domain_name: ['default_domain_name'],
  system_scope: ['system_scope'],
  trust_id: ['trust_id'],
  application_credential_id: ['application_credential_id'],
  application_credential_name: ['application_credential_name'],
  application_credential_secret: ['application_credential_secret'],
};

/**
 * Of these the value beside `auth` beats the one inside: it may be a region's, or come from the environment. Of all
 * others the one inside wins. It is openstacksdk's rule since 2.0.
 */
const OUTSIDE_WINS = /^(?:(?:user_|project_)?domain_|project_|token$)/;

/** Values for authentication by their names of today, each from where it counts; nothing is empty. */
export function credentialsOf(cloud: Mapping, provider: NodepoolCredentials): Mapping {
  const inside = mappingAt(cloud, 'auth');
  const found: Record<string, unknown> = {};
  for (const [name, aliases] of Object.entries(NAMES)) {
    const places = OUTSIDE_WINS.test(name) ? [cloud, inside] : [inside, cloud];
    const order = OUTSIDE_WINS.test(name)
      ? [...aliases].reverse().flatMap((alias) => places.map((place) => place[alias]))
      : places.flatMap((place) => [...aliases].reverse().map((alias) => place[alias]));
    found[name] = order.find(isSet);
  }
  const own = {
    auth_url: provider.authUrl,
    username: provider.username,
    password: provider.password,
    project_id: provider.projectId,
    project_name: provider.projectName,
  };
  for (const [name, value] of Object.entries(own)) if (isSet(value)) found[name] = value;
  return withDomainsSpread(found);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** `domain_*` beside a project means the user's and the project's domain; without a project it is the scope. */
function withDomainsSpread(found: Mapping): Mapping {
  if (!isSet(found.project_id) && !isSet(found.project_name)) return found;
  const { domain_id, domain_name, ...rest } = found;
  return {
    ...rest,
    user_domain_id: rest.user_domain_id ?? domain_id,
    project_domain_id: rest.project_domain_id ?? domain_id,
    user_domain_name: rest.user_domain_name ?? domain_name,
    project_domain_name: rest.project_domain_name ?? domain_name,
  };
}
