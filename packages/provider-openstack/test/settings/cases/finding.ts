import { oneCloud, type SettingsCase } from '../settings-case.ts';

const OTHER = oneCloud().replaceAll('user', 'other-user');

/** Search of files, and their syntax. */
export const FINDING: readonly SettingsCase[] = [
  {
    title: 'the working directory takes precedence over the home',
    files: { 'cwd/clouds.yaml': oneCloud(), 'home/.config/openstack/clouds.yaml': OTHER },
  },
  {
    title: 'the home takes precedence over the site',
    files: { 'home/.config/openstack/clouds.yml': oneCloud(), 'site/openstack/clouds.yaml': OTHER },
  },
  { title: 'the site directory', files: { 'site/openstack/clouds.yaml': oneCloud() } },
  {
    title: 'XDG_CONFIG_HOME takes precedence over ~/.config',
    files: { 'xdg/openstack/clouds.yaml': oneCloud(), 'home/.config/openstack/clouds.yaml': OTHER },
    env: { XDG_CONFIG_HOME: '$TREE/xdg' },
  },
  {
    title: 'clouds.yaml takes precedence over clouds.yml and clouds.json',
    files: { 'cwd/clouds.yaml': oneCloud(), 'cwd/clouds.yml': OTHER, 'cwd/clouds.json': '{}' },
  },
  {
    title: 'clouds.json',
    files: {
      'cwd/clouds.json': JSON.stringify({
        clouds: {
          cloud: {
            auth: { auth_url: 'https://k.example', username: 'u', password: 'p', project_id: 12 },
            verify: false,
            api_timeout: 9,
          },
        },
      }),
    },
  },
  {
    title: 'OS_CLIENT_CONFIG_FILE comes first',
    files: { 'mine.yaml': oneCloud(), 'cwd/clouds.yaml': OTHER },
    env: { OS_CLIENT_CONFIG_FILE: '$TREE/mine.yaml' },
  },
  {
    title: 'OS_CLIENT_CONFIG_FILE may be relative',
    files: { 'cwd/mine.yaml': oneCloud() },
    env: { OS_CLIENT_CONFIG_FILE: 'mine.yaml' },
  },
  {
    title: 'a missing OS_CLIENT_CONFIG_FILE is skipped',
    files: { 'cwd/clouds.yaml': oneCloud() },
    env: { OS_CLIENT_CONFIG_FILE: '$TREE/none.yaml' },
  },
  {
    title: 'only the first file is read',
    files: { 'cwd/clouds.yaml': oneCloud(), 'site/openstack/clouds.yaml': 'clouds: {second: {}}' },
    cloud: 'second',
  },
  {
    title: 'secure.yaml takes precedence over clouds.yaml',
    files: {
      'cwd/clouds.yaml': oneCloud('region_name: one'),
      'site/openstack/secure.yaml': 'clouds: {cloud: {auth: {password: of-secure}}}',
    },
  },
  {
    title: 'OS_CLIENT_SECURE_FILE comes first',
    files: {
      'cwd/clouds.yaml': oneCloud(),
      'cwd/secure.yaml': '{clouds: {cloud: {auth: {password: second}}}}',
      s: '{clouds: {cloud: {auth: {password: first}}}}',
    },
    env: { OS_CLIENT_SECURE_FILE: '$TREE/s' },
  },
  { title: 'a cloud may be only in secure.yaml', files: { 'cwd/secure.yaml': oneCloud() } },
  {
    title: 'the last value of a duplicate key counts',
    files: { 'cwd/clouds.yaml': oneCloud('region_name: first', 'region_name: second') },
  },
  {
    title: 'merge keys and aliases',
    files: {
      'cwd/clouds.yaml': `base: &base {region_name: based, image_format: raw}\n${oneCloud('<<: *base')}`,
    },
  },
  {
    title: 'quoted digits and numbers are text',
    files: { 'cwd/clouds.yaml': oneCloud('project_id: "0123"', 'api_timeout: 90') },
  },
  {
    title: 'an octal number is text',
    files: { 'cwd/clouds.yaml': oneCloud('project_name: 0123') },
    differs: { why: 'PyYAML reads 0123 as the octal number 83', ours: { 'auth.project_name': '0123' } },
  },
  {
    title: 'a file that is not YAML is skipped',
    files: { 'cwd/clouds.yaml': 'clouds: [', 'site/openstack/clouds.yaml': oneCloud() },
    differs: { why: 'openstacksdk skips it only since 4.0', ours: { name: 'cloud' } },
  },
];
