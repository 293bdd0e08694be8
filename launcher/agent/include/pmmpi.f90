! Names regions and probes of an MPI program for pmmpi.
!
!     use pmmpi
!     call pmmpi_begin('solve')
!     ...
!     call pmmpi_end('solve')
!
! These two routines are collective over MPI_COMM_WORLD: every rank calls both, and each call waits for all other
! ranks. All ranks must call both routines, and all other collective routines on MPI_COMM_WORLD (also the
! non-blocking ones), in the same order. Regions may be nested, 64 deep. pmmpi uses only the first 63 bytes
! of a name, and records only the first 255 regions.
!
! A probe is a short section of one thread. Its two routines are not collective: each thread enters and leaves on its
! own, without a barrier and without a system call. There are two exceptions: when a thread enters its first probe,
! pmmpi opens counters; and when a thread first uses a name, pmmpi takes memory for this name.
!
!     call pmmpi_probe_begin('kernel')
!     ...
!     call pmmpi_probe_end('kernel')
!
! pmmpi.h has the other rules: which threads may call the routines, and how many probes pmmpi records. Compile this file
! with the program. Without pmmpi all these routines do nothing.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module pmmpi
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_null_char, &
      c_null_funptr, c_null_ptr, c_ptr, c_size_t
  implicit none
  private
  public :: pmmpi_begin, pmmpi_end, pmmpi_probe_begin, pmmpi_probe_end

  abstract interface
    subroutine region_mark(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    subroutine probe_mark(name, bytes) bind(c)
      import :: c_char, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: bytes
    end subroutine
  end interface

  interface
    function dlsym(handle, name) bind(c, name='dlsym') result(address)
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: address
    end function
  end interface

  logical, save :: looked = .false.
  type(c_funptr), save :: marks(4) = c_null_funptr

contains

  subroutine pmmpi_begin(name)
    character(*), intent(in) :: name
    call at_mark(1, name)
  end subroutine

  subroutine pmmpi_end(name)
    character(*), intent(in) :: name
    call at_mark(2, name)
  end subroutine

  subroutine pmmpi_probe_begin(name)
    character(*), intent(in) :: name
    call at_probe(3, name)
  end subroutine

  subroutine pmmpi_probe_end(name)
    character(*), intent(in) :: name
    call at_probe(4, name)
  end subroutine

  subroutine at_probe(which, name)
    integer, intent(in) :: which
    character(*), intent(in) :: name
    procedure(probe_mark), pointer :: mark
    if (.not. looked) call look
    if (c_associated(marks(which))) then
      call c_f_procpointer(marks(which), mark)
      call mark(name, int(len_trim(name), c_size_t))
    end if
  end subroutine

  subroutine at_mark(which, name)
    integer, intent(in) :: which
    character(*), intent(in) :: name
    procedure(region_mark), pointer :: mark
    if (.not. looked) call look
    if (c_associated(marks(which))) then
      call c_f_procpointer(marks(which), mark)
      call mark(trim(name) // c_null_char)
    end if
  end subroutine

  ! Several threads may look up the functions at once: all find the same addresses.
  subroutine look
    marks(1) = dlsym(c_null_ptr, 'pmmpi_region_begin' // c_null_char)
    marks(2) = dlsym(c_null_ptr, 'pmmpi_region_end' // c_null_char)
    marks(3) = dlsym(c_null_ptr, 'pmmpi_probe_enter' // c_null_char)
    marks(4) = dlsym(c_null_ptr, 'pmmpi_probe_leave' // c_null_char)
    looked = .true.
  end subroutine

end module
