import {
  type MachineSettings,
  machineArguments,
  optionValue,
} from '@nodepool-builder/image-builder/module-kit';
import { CONFIG_DRIVE_LABEL } from './config-drive.ts';

/** A kernel to boot instead of what the disk would have the BIOS boot. Paths are absolute. */
export interface DirectBoot {
  readonly kernel: string;
  readonly initrd?: string;
  /** The kernel's arguments: `root=/dev/vda console=ttyS0`. */
  readonly commandLine: string;
}

/** What of an instance's QEMU is the instance's own. */
export interface InstanceSettings extends MachineSettings {
  readonly name: string;
  readonly cpus: number;
  /** The TCP port that is forwarded to a free one on loopback. */
  readonly port: number;
  readonly directBoot?: DirectBoot;
}

/** The files of an instance, in the directory that QEMU works in. */
export const INSTANCE_FILES = {
  record: 'instance.json',
  disk: 'disk.qcow2',
  configDrive: 'config-drive',
  console: 'console.log',
  monitor: 'qmp.sock',
  log: 'qemu.log',
  /** There once the system has powered off. */
  poweredOff: 'powered-off',
} as const;

/** QEMU's arguments for an instance. */
export function instanceArguments({ name, cpus, port, directBoot, ...machine }: InstanceSettings): string[] {
  const { disk, configDrive, console, monitor } = INSTANCE_FILES;
  return [
    ['-name', optionValue(name)],
    machineArguments(machine),
    ['-smp', `${cpus}`],
    // Powered off, QEMU waits: nobody can take its end by another cause for that, whoever looks, and when.
    ['-no-shutdown'],
    // Without flushing: it is of no use before it is captured, and a host that breaks down ends it anyway.
    ['-drive', `file=${disk},format=qcow2,if=virtio,cache=unsafe,discard=unmap`],
    ['-drive', `driver=vvfat,dir=${configDrive},label=${CONFIG_DRIVE_LABEL},if=virtio,read-only=on`],
    // QEMU finds the free port itself and keeps it: nobody else can take it in between.
    ['-netdev', `user,id=net0,hostfwd=tcp:127.0.0.1:0-:${port}`],
    ['-device', 'virtio-net-pci,netdev=net0,romfile='],
    ['-device', 'virtio-rng-pci'],
    ['-display', 'none'],
    ['-serial', `file:${console}`],
    ['-monitor', 'none'],
    ['-qmp', `unix:${monitor},server=on,wait=off`],
    directBoot === undefined ? [] : ['-kernel', directBoot.kernel, '-append', directBoot.commandLine],
    directBoot?.initrd === undefined ? [] : ['-initrd', directBoot.initrd],
  ].flat();
}

/** The port on loopback that is forwarded, in what QEMU's monitor says to `info usernet`. */
export function forwardedPort(usernet: string): number | undefined {
  const port = /^ *TCP\[HOST_FORWARD\] +\d+ +127\.0\.0\.1 +(\d+) /m.exec(usernet)?.[1];
  return port === undefined ? undefined : Number(port);
}
