import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings, type SettingsOf, type SettingsSchema } from '../src/settings-schema.ts';

const SCHEMA = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string' },
    memory: { type: 'integer', default: 1024 },
    accelerator: { enum: ['kvm', 'tcg'] },
    kernel: { type: 'string', format: 'path' },
    steps: {
      type: 'array',
      items: { type: ['string', 'object'], properties: { script: { type: 'string', format: 'path' } } },
    },
  },
} as const satisfies SettingsSchema;

test('settings have defaults filled in and absolute paths, at every depth', () => {
  const settings: SettingsOf<typeof SCHEMA> = readSettings(
    SCHEMA,
    { name: 'qemu', kernel: 'vmlinuz', steps: ['true', { script: 'a.sh' }] },
    (path) => `/etc/nodepool/${path}`,
  );
  const { name, memory, accelerator }: { name: string; memory: number; accelerator?: 'kvm' | 'tcg' } =
    settings;
  assert.deepEqual([name, memory, accelerator], ['qemu', 1024, undefined]);
  assert.equal(settings.kernel, '/etc/nodepool/vmlinuz');
  assert.deepEqual(settings.steps, ['true', { script: '/etc/nodepool/a.sh' }]);
});

function absolute(path: string): string {
  return `/etc/nodepool/${path}`;
}

test('a program in settings is a path if it has a slash, also as a list’s first item', () => {
  const command = { type: 'array', format: 'program', items: { type: 'string' } } as const;
  assert.deepEqual(readSettings(command, ['bin/make', 'a/b'], absolute), ['/etc/nodepool/bin/make', 'a/b']);
  assert.deepEqual(readSettings(command, ['make', 'a/b'], absolute), ['make', 'a/b']);
  assert.equal(
    readSettings({ type: 'string', format: 'program' }, './hook', absolute),
    '/etc/nodepool/./hook',
  );
});

test('a value in settings takes precedence over the default, and the input is not changed', () => {
  const given = { name: 'qemu', memory: 512 };
  assert.equal(readSettings(SCHEMA, given, String).memory, 512);
  assert.deepEqual(readSettings(SCHEMA, { name: 'a' }, String), { name: 'a', memory: 1024 });
  assert.deepEqual(given, { name: 'qemu', memory: 512 });
});
