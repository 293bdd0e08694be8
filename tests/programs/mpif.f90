! include 'mpif.h': sleeps 20 ms and says rank and size.
program mpif
  implicit none
  include 'mpif.h'
  integer :: code, rank, size
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, size, code)
  call execute_command_line('sleep 0.02')
  print '(a,i0,a,i0)', 'rank ', rank, ' of ', size
  call MPI_Finalize(code)
end program
