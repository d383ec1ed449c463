import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  forwardedPort,
  type InstanceSettings,
  instanceArguments,
} from '../../src/qemu/instance-arguments.ts';

const SETTINGS: InstanceSettings = {
  name: 'debian-1',
  memory: 1024,
  accelerator: 'tcg',
  cpus: 2,
  port: 22,
};

/** The values of an option, in their order. */
function valuesOf(option: string, args: readonly string[]): string[] {
  return args.filter((_, index) => args[index - 1] === option);
}

describe('arguments of an instance', () => {
  test('memory, processors, accelerator and port are those that are wanted', () => {
    const args = instanceArguments({ ...SETTINGS, memory: 4096, cpus: 3, port: 5986 });
    assert.deepEqual([...valuesOf('-m', args), ...valuesOf('-smp', args)], ['4096', '3']);
    assert.deepEqual(valuesOf('-accel', args), ['tcg']);
    assert.deepEqual(valuesOf('-netdev', args), ['user,id=net0,hostfwd=tcp:127.0.0.1:0-:5986']);
  });

  test('a name may hold what separates options', () => {
    const args = instanceArguments({ ...SETTINGS, name: 'debian,debug-threads=on' });
    assert.deepEqual(valuesOf('-name', args), ['debian,,debug-threads=on']);
  });

  test('a kernel is booted directly only if there is one', () => {
    assert.ok(!instanceArguments(SETTINGS).includes('-kernel'));
    const directBoot = { kernel: '/boot/vmlinuz', commandLine: 'root=/dev/vda ro' };
    const args = instanceArguments({ ...SETTINGS, directBoot });
    assert.deepEqual(valuesOf('-kernel', args), ['/boot/vmlinuz']);
    assert.deepEqual(valuesOf('-append', args), ['root=/dev/vda ro']);
    assert.ok(!args.includes('-initrd'));
    const withInitrd = instanceArguments({
      ...SETTINGS,
      directBoot: { ...directBoot, initrd: '/boot/initrd' },
    });
    assert.deepEqual(valuesOf('-initrd', withInitrd), ['/boot/initrd']);
  });
});

test('the forwarded port is read from what QEMU says, and no connection is taken for it', () => {
  const head =
    'Hub -1 (net0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n';
  const forward = '  TCP[HOST_FORWARD]  11       127.0.0.1 34423       10.0.2.15    22     0     0\r\n';
  const connection = '  TCP[ESTABLISHED]   12       127.0.0.1 50000       10.0.2.15    22     0     0\r\n';
  assert.equal(forwardedPort(head + connection + forward), 34_423);
  assert.equal(forwardedPort(head + connection), undefined);
});
