import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { OpenStackError } from '../../src/openstack-error.ts';
import { loadCloudSettings } from '../../src/settings/load-cloud-settings.ts';
import { oneCloud, type SettingsCase } from './settings-case.ts';
import { settingsTree } from './settings-tree.ts';

/** Stands wherever a secret may stand by mistake; no message may hold it. */
const SECRET = 'hunter2';

interface Fault extends Omit<SettingsCase, 'differs'> {
  /** `$TREE` is where the files lie. */
  readonly message: string;
}

const CLOUD = 'provider "p", cloud "cloud" of $TREE/cwd/clouds.yaml';

function inCloud(title: string, lines: readonly string[], message: string): Fault {
  return { title, files: { 'cwd/clouds.yaml': oneCloud(...lines) }, message: `${CLOUD}: ${message}` };
}

function inAuth(title: string, auth: string, message: string, type = 'password'): Fault {
  const text = `clouds: {cloud: {auth_type: ${type}, auth: {${auth}}}}`;
  return { title, files: { 'cwd/clouds.yaml': text }, message: `${CLOUD}: ${message}` };
}

const URL = "auth_url: 'https://k.example'";
const TO_AUTH = 'add it to "auth" of the cloud, or to the provider';
const QUOTES = 'write one text, in quotes if it looks like something else';

const FAULTS: readonly Fault[] = [
  {
    title: 'a cloud that is not there',
    files: { 'cwd/clouds.yaml': `${oneCloud()}  other: {}\n` },
    cloud: 'third',
    message:
      'provider "p": there is no cloud "third" in $TREE/cwd/clouds.yaml; the clouds there: cloud, other; ' +
      'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  },
  {
    title: 'a cloud, but no file',
    cloud: 'rax',
    message:
      'provider "p": there is no cloud "rax" in the environment (no clouds.yaml lies in $TREE/cwd, ' +
      '$TREE/home/.config/openstack, $TREE/site/openstack, /etc/openstack); the clouds there: none; ' +
      'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  },
  {
    title: 'several clouds, and none is named',
    files: { 'cwd/clouds.yaml': 'clouds: {a: {}, b: {}}', 'cwd/secure.yml': 'clouds: {c: {}}' },
    message:
      'provider "p" names no cloud, and $TREE/cwd/clouds.yaml with $TREE/cwd/secure.yml has several: a, b, c; ' +
      'name one with "cloud" of the provider, or with OS_CLOUD',
  },
  {
    title: 'a cloud of a file is called like that of the environment',
    files: { 'cwd/clouds.yaml': oneCloud() },
    env: { OS_CLOUD_NAME: 'cloud', OS_PASSWORD: SECRET },
    message:
      '$TREE/cwd/clouds.yaml has a cloud "cloud", which is the name of the cloud that OS_* variables make; ' +
      'give one of them another name: that of the environment is set by OS_CLOUD_NAME',
  },
  {
    title: 'a region in small letters',
    files: { 'cwd/clouds.yaml': oneCloud('profile: rackspace') },
    regionName: 'dfw',
    message:
      `${CLOUD} has no region "dfw"; its regions are DFW, HKG, IAD, ORD, SYD, LON; ` +
      'correct region-name (capitals count), or add the region to "regions" of the cloud',
  },
  {
    title: 'a region that is none',
    files: { 'cwd/clouds.yaml': oneCloud(`regions: [{name: r, password: ${SECRET}}]`) },
    message:
      `${CLOUD} has "regions" that are no list of regions; ` +
      'write a name for each, or a mapping with "name" and "values" and nothing else',
  },
  {
    title: 'a profile at an address',
    files: { 'cwd/clouds.yaml': oneCloud(`profile: https://user:${SECRET}@vendor.example`) },
    message:
      `${CLOUD} has its profile at an address, which is not supported; ` +
      'name a vendor, or write auth_url and regions into clouds.yaml',
  },
  {
    title: 'a provider without an auth-url, and nothing else',
    provider: { username: 'u', password: SECRET },
    message:
      'provider "p" of the environment (no clouds.yaml lies in $TREE/cwd, $TREE/home/.config/openstack, ' +
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
    'an auth_url that is none',
    `auth_url: 'user:${SECRET}@k.example', username: u, password: ${SECRET}`,
    'auth_url is no address; write one that begins with https:// or http://',
  ),
  inAuth('no username', `${URL}, password: ${SECRET}`, `username is missing; ${TO_AUTH}`),
  inAuth('no password', `${URL}, username: u, password: ''`, `password is missing; ${TO_AUTH}`),
  inAuth(
    'a password that is a list',
    `${URL}, username: u, password: [${SECRET}]`,
    `password is no text; ${QUOTES}`,
  ),
  inAuth(
    'a password that is a boolean',
    `${URL}, username: u, password: true`,
    `password is no text; ${QUOTES}`,
  ),
  inAuth('no token', URL, `token is missing; ${TO_AUTH}`, 'v3token'),
  inAuth(
    'no id of an application credential',
    `${URL}, application_credential_secret: ${SECRET}`,
    'application_credential_id is missing; add it to "auth" of the cloud',
    'v3applicationcredential',
  ),
  inAuth(
    'an auth_type that is not supported',
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
    'auth_type none leaves no way to find the services; add image_endpoint_override',
    'none',
  ),
  inCloud(
    'a placeholder that stands for nothing',
    [`image_endpoint_override: 'https://{${SECRET}}.example'`],
    'image_endpoint_override holds a placeholder that stands for nothing; name a setting of the cloud between ' +
      'the braces, as in {region_name}, or double them',
  ),
  inCloud(
    'a brace alone',
    [`image_endpoint_override: 'https://{${SECRET}'`],
    'image_endpoint_override holds a placeholder that stands for nothing; name a setting of the cloud between ' +
      'the braces, as in {region_name}, or double them',
  ),
  inCloud(
    'an interface that does not exist',
    ['image_interface: private'],
    'image_interface does not exist; write one of public, internal, admin',
  ),
  inCloud('several interfaces', ['interface: [internal, public]'], `interface is no text; ${QUOTES}`),
  inCloud(
    'verify is neither true nor false',
    ['verify: /ca.pem'],
    'verify is neither true nor false; name a file of certificates with cacert',
  ),
  inCloud(
    'a timeout that is no number',
    ['api_timeout: 10 min'],
    'api_timeout is no number of seconds; write a number above 0',
  ),
  inCloud(
    'a timeout of nothing',
    ['api_timeout: 0'],
    'api_timeout is no number of seconds; write a number above 0',
  ),
  inCloud(
    'an unknown format',
    ['image_format: img'],
    'image_format is unknown; write qcow2, raw, vhd or another format that images are made in',
  ),
];

suite('settings that cannot be used', () => {
  for (const fault of FAULTS) {
    test(fault.title, async (t) => {
      const { root, place, warnings } = await settingsTree(t, withSecret(fault));
      const { cloud, regionName, provider } = fault;
      const request = { cloud, regionName, provider: { name: 'p', ...provider } };
      await assert.rejects(loadCloudSettings(request, place), (error) => {
        assert.ok(error instanceof OpenStackError);
        assert.equal(error.code, 'invalid-settings');
        assert.equal(error.message, fault.message.replaceAll('$TREE', root));
        assert.ok(!inspect(error, { depth: 9 }).includes(SECRET), 'a secret is told');
        return true;
      });
      assert.ok(!warnings.join().includes(SECRET), 'a secret is told');
    });
  }
});

function withSecret(fault: Fault): Fault {
  const files = Object.entries(fault.files ?? {}).map(([path, text]) => [
    path,
    text.replaceAll('cloud-password', SECRET),
  ]);
  return { ...fault, files: Object.fromEntries(files) };
}
