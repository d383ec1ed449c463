import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { loadCloudSettings } from '../../src/settings/load-cloud-settings.ts';
import { oneCloud, type SettingsCase } from './settings-case.ts';
import { settingsTree } from './settings-tree.ts';

/** A secret in many places, even wrong ones; no message may contain it. */
const SECRET = 'hunter2';

interface InvalidCase extends Omit<SettingsCase, 'differs'> {
  /** `$TREE` is the directory of the files. */
  readonly message: string;
}

const CLOUD = 'provider "p", cloud "cloud" of $TREE/cwd/clouds.yaml';

function inCloud(title: string, lines: readonly string[], message: string): InvalidCase {
  return { title, files: { 'cwd/clouds.yaml': oneCloud(...lines) }, message: `${CLOUD}: ${message}` };
}

function inAuth(title: string, auth: string, message: string, type = 'password'): InvalidCase {
  const text = `clouds: {cloud: {auth_type: ${type}, auth: {${auth}}}}`;
  return { title, files: { 'cwd/clouds.yaml': text }, message: `${CLOUD}: ${message}` };
}

const URL = "auth_url: 'https://k.example'";
const TO_AUTH = 'add it to "auth" of the cloud, or to the provider';
const QUOTES = 'write one text, in quotes if it looks like something else';

const INVALID: readonly InvalidCase[] = [
  {
    title: 'an unknown cloud',
    files: { 'cwd/clouds.yaml': `${oneCloud()}  other: {}\n` },
    cloud: 'third',
    message:
      'provider "p": the cloud "third" is not in $TREE/cwd/clouds.yaml; known clouds: cloud, other; ' +
      'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  },
  {
    title: 'a cloud without a file',
    cloud: 'rax',
    message:
      'provider "p": the cloud "rax" is not in the environment (no clouds.yaml exists in $TREE/cwd, ' +
      '$TREE/home/.config/openstack, $TREE/site/openstack, /etc/openstack); known clouds: none; ' +
      'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  },
  {
    title: 'a cloud without the file that the environment names',
    env: { OS_CLIENT_CONFIG_FILE: '/missing/clouds.yaml' },
    cloud: 'rax',
    message:
      'provider "p": the cloud "rax" is not in the environment (OS_CLIENT_CONFIG_FILE names /missing/clouds.yaml, ' +
      'which cannot be used, and no clouds.yaml exists in $TREE/cwd, ' +
      '$TREE/home/.config/openstack, $TREE/site/openstack, /etc/openstack); known clouds: none; ' +
      'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  },
  {
    title: 'several clouds without a choice',
    files: { 'cwd/clouds.yaml': 'clouds: {a: {}, b: {}}', 'cwd/secure.yml': 'clouds: {c: {}}' },
    message:
      'provider "p" has no key "cloud", and $TREE/cwd/clouds.yaml with $TREE/cwd/secure.yml has several clouds: a, b, c; ' +
      'set "cloud" of the provider, or OS_CLOUD',
  },
  {
    title: 'a cloud of a file with the name of the environment’s cloud',
    files: { 'cwd/clouds.yaml': oneCloud() },
    env: { OS_CLOUD_NAME: 'cloud', OS_PASSWORD: SECRET },
    message:
      '$TREE/cwd/clouds.yaml has a cloud "cloud", but that is also the name of the cloud of the OS_* variables; ' +
      'rename the cloud in the file, or set OS_CLOUD_NAME to another name',
  },
  {
    title: 'a region in lower case',
    files: { 'cwd/clouds.yaml': oneCloud('profile: rackspace') },
    regionName: 'dfw',
    message:
      `${CLOUD} has no region "dfw"; its regions are DFW, HKG, IAD, ORD, SYD, LON; ` +
      'correct region-name (case-sensitive), or add the region to "regions" of the cloud',
  },
  {
    title: 'an invalid region',
    files: { 'cwd/clouds.yaml': oneCloud(`regions: [{name: r, password: ${SECRET}}]`) },
    message:
      `${CLOUD} has "regions" that are not a list of regions; ` +
      'write a name for each, or a mapping with only "name" and "values"',
  },
  {
    title: 'a profile at a URL',
    files: { 'cwd/clouds.yaml': oneCloud(`profile: https://user:${SECRET}@vendor.example`) },
    message:
      `${CLOUD} names a profile by URL, which is not supported; ` +
      'name a vendor, or write auth_url and regions into clouds.yaml',
  },
  {
    title: 'a provider with only a user, without an auth-url',
    provider: { username: 'u', password: SECRET },
    message:
      'provider "p" of the environment (no clouds.yaml exists in $TREE/cwd, $TREE/home/.config/openstack, ' +
      `$TREE/site/openstack, /etc/openstack): auth_url is missing; ${TO_AUTH}`,
  },
  {
    title: 'the environment without an auth_url',
    env: { OS_USERNAME: 'u', OS_PASSWORD: SECRET },
    files: { 'cwd/clouds.yaml': oneCloud() },
    message: `provider "p", cloud "envvars" of the OS_* variables: auth_url is missing; ${TO_AUTH}`,
  },
  inAuth('no auth_url', `username: u, password: ${SECRET}`, `auth_url is missing; ${TO_AUTH}`),
  inAuth(
    'an invalid auth_url',
    `auth_url: 'user:${SECRET}@k.example', username: u, password: ${SECRET}`,
    'auth_url is not a URL; write one that begins with https:// or http://',
  ),
  inAuth('no username', `${URL}, password: ${SECRET}`, `username is missing; ${TO_AUTH}`),
  inAuth('no password', `${URL}, username: u, password: ''`, `password is missing; ${TO_AUTH}`),
  inAuth(
    'a password that is a list',
    `${URL}, username: u, password: [${SECRET}]`,
    `password is not text; ${QUOTES}`,
  ),
  inAuth(
    'a password that is a boolean',
    `${URL}, username: u, password: true`,
    `password is not text; ${QUOTES}`,
  ),
  inAuth('no token', URL, `token is missing; ${TO_AUTH}`, 'v3token'),
  inAuth(
    'no id of an application credential',
    `${URL}, application_credential_secret: ${SECRET}`,
    'application_credential_id is missing; add it to "auth" of the cloud',
    'v3applicationcredential',
  ),
  inAuth(
    'an unsupported auth_type',
    `${URL}, username: u, passcode: ${SECRET}`,
    'its auth_type is not supported; use one of password, v2password, v3password, token, v2token, v3token, ' +
      'v3applicationcredential, none',
    'v3totp',
  ),
  inAuth(
    'two scopes',
    `${URL}, username: u, password: ${SECRET}, project_id: i, system_scope: all`,
    'a token is for a project, a domain or the system; keep only one of them',
  ),
  inAuth(
    'a trust',
    `${URL}, username: u, password: ${SECRET}, trust_id: i`,
    'trust_id is not supported; name a project',
  ),
  inAuth(
    'another system',
    `${URL}, username: u, password: ${SECRET}, system_scope: some`,
    'system_scope is unknown; write "all", or name a project',
  ),
  inAuth(
    'no endpoint without Keystone',
    '',
    'auth_type none needs the URL of the image service; add image_endpoint_override',
    'none',
  ),
  inCloud(
    'an unknown placeholder',
    [`image_endpoint_override: 'https://{${SECRET}}.example'`],
    "image_endpoint_override has an unknown placeholder; use the name of one of the cloud's settings as " +
      'placeholder, such as {region_name}, or double the braces',
  ),
  inCloud(
    'a brace alone',
    [`image_endpoint_override: 'https://{${SECRET}'`],
    "image_endpoint_override has an unknown placeholder; use the name of one of the cloud's settings as " +
      'placeholder, such as {region_name}, or double the braces',
  ),
  inCloud(
    'an unknown interface',
    ['image_interface: private'],
    'image_interface does not exist; write one of public, internal, admin',
  ),
  inCloud('several interfaces', ['interface: [internal, public]'], `interface is not text; ${QUOTES}`),
  inCloud(
    'verify is neither true nor false',
    ['verify: /ca.pem'],
    'verify is neither true nor false; set cacert to a certificate file',
  ),
  inCloud(
    'a timeout that is not a number',
    ['api_timeout: 10 min'],
    'api_timeout is not a number of seconds; write a number greater than 0',
  ),
  inCloud(
    'a timeout of 0',
    ['api_timeout: 0'],
    'api_timeout is not a number of seconds; write a number greater than 0',
  ),
  inCloud(
    'an unknown format',
    ['image_format: img'],
    'image_format is unknown; write qcow2, raw, vhd or another image format',
  ),
];

suite('invalid settings', () => {
  for (const one of INVALID) {
    test(`invalid cloud settings are rejected: ${one.title}`, async (t) => {
      const { root, place, warnings } = await settingsTree(t, withSecret(one));
      const { cloud, regionName, provider } = one;
      const request = { cloud, regionName, provider: { name: 'p', ...provider } };
      await assert.rejects(loadCloudSettings(request, place), (error) => {
        assert.ok(error instanceof CloudError);
        assert.equal(error.code, 'invalid-settings');
        assert.equal(error.message, one.message.replaceAll('$TREE', root));
        assert.ok(!inspect(error, { depth: 9 }).includes(SECRET), 'a message contains a secret');
        return true;
      });
      assert.ok(!warnings.join().includes(SECRET), 'a message contains a secret');
    });
  }
});

function withSecret(one: InvalidCase): InvalidCase {
  const files = Object.entries(one.files ?? {}).map(([path, text]) => [
    path,
    text.replaceAll('cloud-password', SECRET),
  ]);
  return { ...one, files: Object.fromEntries(files) };
}
